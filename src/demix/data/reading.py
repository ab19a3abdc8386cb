"""Files of any supported format as :class:`Data`."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.files import check_regular, file_digest
from demix.data.csv_files import check_header, read_csv
from demix.data.data import Data, checked_data
from demix.data.formats import TABLES, suffix_of
from demix.data.npy_files import read_npy, read_npz
from demix.data.rows import Rows, array_rows

_KNOWN = ".npy, .npz, .csv, .tsv, .csv.gz, .parquet, .zarr, or a folder of images (.png, ...)"


def read_data(
    path: str | Path,
    *,
    key: str | None = None,
    columns: Sequence[str | int] | None = None,
    header: str = "auto",
) -> Data:
    r"""Open a file, a zarr store or a folder of images: rows ``(N, d)`` or images ``(N, C, H, W)``.

    What lies in ``.npy``, ``.zarr`` and folders of images stays on disk and may be larger than
    memory; ``.npz``, ``.csv`` and ``.parquet`` are read once. Nothing that a file holds is ever
    executed: pickled objects are refused.

    Parameters
    ----------
    path : str or Path
        ``.npy``; ``.npz``; ``.csv`` or ``.tsv`` with commas, semicolons or tabs, decimal points or
        commas, with or without a header, numbers only, also packed (``.csv.gz``, ``.csv.bz2``,
        ``.csv.xz``); ``.parquet``; ``.zarr``; or a folder of images
        (``.png``, ``.jpg``, ``.webp``, ``.tif`` or ``.bmp``) of one size, which are sorted by name
        and scaled to [0, 1].
    key : str, optional
        Which array of an ``.npz`` archive or a zarr group, if there are several.
    columns : sequence of str or int, optional
        Which columns of a table, by name, or by number from 0 in a csv file without a header.
    header : "auto", "yes" or "no"
        Whether the first line of a csv file names its columns. By default it does if most of its
        cells are not numbers, or if it counts three columns or more from 0 above numbers that are
        not all whole; a :class:`DemixWarning` says when it may do so nevertheless.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from demix import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.csv"
    ...     _ = path.write_text("height,mass\n1.8,80\n1.6,55\n")
    ...     data = read_data(path)
    >>> data.shape, data.names
    ((2, 2), ('height', 'mass'))
    """
    path = Path(path)
    check_header(header)
    kind = _kind(path)
    if key is not None and kind not in (".npz", ".zarr"):
        raise DemixError(f"A key chooses from an .npz or .zarr file, but {path} is neither.")
    if columns is not None and kind not in TABLES:
        raise DemixError(f"Columns are chosen from a .csv or .parquet file; {path} is neither.")
    if columns is not None and len({str(c).strip() for c in columns}) < max(1, len(columns)):
        got = ", ".join(map(str, columns)) or "none"
        raise DemixError(f"Expected one or more different columns of {path}, but got {got}.")
    rows: Rows
    names, form = None, ""
    if kind == "folder":
        from demix.data.images import ImageRows

        rows = ImageRows(path)
    elif kind == ".zarr":
        from demix.data.zarr_files import open_zarr

        rows = open_zarr(path, key)
    elif kind == ".parquet":
        from demix.data.parquet_files import read_parquet

        table, names = read_parquet(path, columns)
        rows = array_rows(table)
    elif kind in TABLES:
        table, names, form = read_csv(path, columns, header=header)
        rows = array_rows(table)
    else:
        rows = array_rows(read_npy(path) if kind == ".npy" else read_npz(path, key))
    return replace(checked_data(rows, str(path), names), form=form)


def input_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the rows in a folder, where other files may lie."""
    return read_data(path).digest() if path.is_dir() else file_digest(path)


def _kind(path: Path) -> str:
    """Return the suffix that says how a path is read, or ``"folder"``."""
    there = os.path.lexists(path)
    if not there or not os.access(path, os.R_OK):
        found = "may not be read" if there else "does not exist"
        raise DemixError(f"Expected data to read, but {path} {found}; known are {_KNOWN}.")
    if path.is_dir():
        marks = ("zarr.json", ".zarray", ".zgroup")
        store = path.suffix.lower() == ".zarr" or any(os.path.exists(path / mark) for mark in marks)
        return ".zarr" if store else "folder"
    check_regular(path)
    suffix = suffix_of(path)
    if suffix not in (".npy", ".npz", ".zarr", *TABLES):
        raise DemixError(f"Expected {_KNOWN}, but got {path}; convert it to one of them.")
    return suffix
