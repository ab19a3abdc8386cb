"""Names of columns and of rows."""

from __future__ import annotations

import os
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.files import is_there
from demix._support.text import reason
from demix.data.csv_files import csv_layout
from demix.data.labels import csv_cells
from demix.data.npy_files import read_npy
from demix.data.parquet_files import parquet_cells, parquet_names

_KNOWN = ".txt, .csv, .parquet or .npy"


def table_names(path: Path, header: str = "auto") -> list[str] | None:
    """Return the names of the columns of a table; None if it has none, or is no table.

    ``header`` says whether the first line of a csv file names them; see :func:`csv_layout`.
    """
    suffix = path.suffix.lower()
    if not os.path.isfile(path) or suffix not in (".csv", ".tsv", ".parquet"):
        return None
    if suffix == ".parquet":
        return parquet_names(path)
    names = csv_layout(path, header).names
    return None if names is None else list(names)


def read_names(path: Path, column: str | None = None) -> list[str]:
    """Return a name for each row, as it is written.

    Parameters
    ----------
    path : Path
        A ``.csv``, ``.tsv`` or ``.parquet`` file, a ``.txt`` file with a name in each line, or an
        ``.npy`` file of text or whole numbers.
    column : str, optional
        Which column of a table, if there are several.
    """
    suffix = path.suffix.lower()
    there = is_there(path)
    if not there or suffix not in (".csv", ".tsv", ".parquet", ".txt", ".npy"):
        found = "is neither" if there else "is no such file"
        raise DemixError(
            f"Expected names in a .txt, .csv, .parquet or .npy file, but {path} {found}."
        )
    if suffix in (".csv", ".tsv"):
        return csv_cells(path, column, "name")
    if suffix == ".parquet":
        return parquet_cells(path, column or parquet_names(path)[0])
    if suffix == ".txt":
        return _lines(path)
    array = read_npy(path)
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise DemixError(
            f"Expected a name for each row, (N,) of text, but {path} is {array.dtype} of shape "
            f"{array.shape}."
        )
    return [str(name) for name in array]


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DemixError(
            f"Expected names in UTF-8, but {path} cannot be read as such ({reason(error)}); write "
            "it again."
        ) from error
    names = [line.strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    if not names or "" in names:
        where = f"line {names.index('') + 1} is empty" if names else "it is empty"
        raise DemixError(f"Expected a name in every line of {path}, but {where}.")
    return names
