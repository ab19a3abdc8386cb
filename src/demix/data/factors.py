"""Known factors from files: numbers, and in tables text as well."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, shortened
from demix.data.csv_files import check_header, csv_delimiter, csv_lines, reads_as
from demix.data.npy_files import read_npy
from demix.data.parquet_files import parquet_cells, parquet_text, read_parquet
from demix.data.reading import read_data

_BEGIN = 1000


@dataclass(frozen=True, eq=False)
class KnownFactors:
    """Factors that are known, a row for each sample.

    Parameters
    ----------
    values : ndarray (N, n)
        Numbers; or objects, each column of which is numbers or text.
    names : tuple of str, optional
        Names of the columns, if the file has any.
    """

    values: np.ndarray
    names: tuple[str, ...] | None = None


def read_factors(path: str | Path, *, header: str = "auto") -> KnownFactors:
    r"""Read factors of both kinds, numbers and categories.

    Parameters
    ----------
    path : str or Path
        Any file that :func:`read_data` opens; besides, an ``.npy`` file of text, and a
        ``.parquet``, ``.csv`` or ``.tsv`` file some or all of whose columns are text.
    header : "auto", "yes" or "no"
        Whether the first line of a csv file names its columns. By default it does as in
        :func:`read_data`; above columns of text, if it holds text above numbers, or nothing that
        stands below.

    Returns
    -------
    KnownFactors
        To be scored, e.g. by :func:`mutual_information_gap`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from demix import read_factors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "factors.csv"
    ...     _ = path.write_text("size,shape\n0.5,cube\n0.25,ball\n")
    ...     factors = read_factors(path)
    >>> factors.values.tolist(), factors.names
    ([[0.5, 'cube'], [0.25, 'ball']], ('size', 'shape'))
    """
    path = Path(path)
    check_header(header)
    suffix = path.suffix.lower() if os.path.isfile(path) else None
    if suffix == ".npy" and (text := read_npy(path)).dtype.kind == "U":
        return KnownFactors(np.array(text))
    if suffix in (".csv", ".tsv"):
        found = _with_text(path, header)
        if found is not None:
            return found
    if suffix == ".parquet":
        is_text = parquet_text(path)
        if any(is_text.values()):
            return _parquet_with_text(path, is_text)
    data = read_data(path, header=header)
    return KnownFactors(data.array(), data.names)


def _parquet_with_text(path: Path, is_text: dict[str, bool]) -> KnownFactors:
    numbers = [name for name, text in is_text.items() if not text]
    rows = dict(zip(numbers, read_parquet(path, numbers)[0].T, strict=True)) if numbers else {}
    cells: dict[str, Any] = {
        name: parquet_cells(path, name) if text else rows[name] for name, text in is_text.items()
    }
    values = np.empty((len(next(iter(cells.values()))), len(cells)), dtype=object)
    if not len(values):
        raise DemixError(f"Expected at least one row, but {path} has none.")
    for place, column in enumerate(cells.values()):
        values[:, place] = column
    return KnownFactors(values, tuple(cells))


def _with_text(path: Path, header: str) -> KnownFactors | None:
    """Read a csv file with columns of text; None if there are none among the first lines."""
    delimiter = csv_delimiter(path)
    # Most files are numbers, which numpy reads much faster.
    begin = [cells for _, cells in itertools.islice(csv_lines(path, delimiter), 1, _BEGIN)]
    if all(reads_as(float, cell) for cells in begin for cell in cells):
        return None
    numbered = list(csv_lines(path, delimiter))
    cells = [[cell.strip() for cell in line] for _, line in numbered]
    for line, found in numbered:
        if len(found) != len(cells[0]):
            raise DemixError(
                f"Expected {len(cells[0])} cells in every line of {path}, but line {line} has "
                f"{len(found)}."
            )
    columns = list(zip(*cells, strict=True))
    is_number = [[reads_as(float, cell) for cell in column] for column in columns]
    numeric = [all(number[1:]) for number in is_number]
    if all(numeric):
        return None
    if header != "auto":
        named = header == "yes"
    elif any(numeric):
        named = any(
            whole and not number[0] for whole, number in zip(numeric, is_number, strict=True)
        )
    else:
        named = not any(column[0] in column[1:] for column in columns)
    start = 1 if named else 0
    values = np.empty((len(cells) - start, len(columns)), dtype=object)
    for place, (column, number) in enumerate(zip(columns, is_number, strict=True)):
        wrong = _odd_one(column[start:], number[start:])
        if wrong is not None:
            line = numbered[start + wrong][0]
            odd = column[start + wrong]
            held = f"holds {shortened(odd)!r}" if odd else "is empty"
            kind = "numbers" if not number[start + wrong] else "text"
            name = shortened(column[0]) if named else place
            raise DemixError(
                f"Expected a column of numbers or one of text, but line {line} of {path} {held} in "
                f"column {name}, which is {kind} elsewhere; mend it or drop the line."
            )
        values[:, place] = (
            [float(cell) for cell in column[start:]] if number[-1] else column[start:]
        )
    return KnownFactors(values, tuple(column[0] for column in columns) if named else None)


def _odd_one(cells: Sequence[str], number: Sequence[bool]) -> int | None:
    """Return the place of the first cell that is empty, or of the rarer kind; None if none is."""
    rarer = sum(number) * 2 < len(number)
    return next(
        (
            place
            for place, (cell, is_number) in enumerate(zip(cells, number, strict=True))
            if not cell or (is_number == rarer and any(number) and not all(number))
        ),
        None,
    )
