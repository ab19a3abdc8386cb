"""Labels from files: numbers, or text that is numbered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix._support.text import shortened
from demix.data.csv_files import csv_delimiter, csv_lines, reads_as
from demix.data.formats import find_column
from demix.data.npy_files import is_table, read_npy

_MOST = 2**63


@dataclass(frozen=True, eq=False)
class Labels:
    """The class of each row.

    Parameters
    ----------
    values : ndarray (N,) of int64
        Whole numbers; text is numbered from 0 in alphabetical order.
    names : tuple of str, optional
        The text behind each number, if labels were text.
    """

    values: np.ndarray
    names: tuple[str, ...] | None = None


def read_labels(path: str | Path, *, column: str | None = None) -> Labels:
    r"""Read one label for each row.

    Parameters
    ----------
    path : str or Path
        An ``.npy`` file ``(N,)`` of whole numbers or text, or a ``.csv`` or ``.tsv`` file. The
        first line of the latter is a header if it is no number and stands nowhere below.
    column : str, optional
        Which column of a csv file with a header, if there are several.

    Returns
    -------
    Labels
        Numbers, and names if the labels were text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from demix import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "animals.csv"
    ...     _ = path.write_text("animal\ndog\ncat\ndog\n")
    ...     labels = read_labels(path)
    >>> labels.values.tolist(), labels.names
    ([1, 0, 1], ('cat', 'dog'))
    """
    path = Path(path)
    if is_table(path):
        return _from_cells(csv_cells(path, column, "label"), path)
    if column is not None:
        raise DemixError(f"A column is chosen from a .csv file, but {path} is an .npy file.")
    array = read_npy(path)
    if array.ndim != 1 or len(array) == 0:
        raise DemixError(
            f"Expected one label for each row, (N,), but {path} has shape {array.shape}."
        )
    if array.dtype.kind == "U":
        return _numbered(array)
    if array.dtype.kind not in "biu":
        raise DemixError(
            f"Expected labels that are whole numbers or text, but {path} is of type {array.dtype}."
        )
    return Labels(array.astype(np.int64))


def csv_cells(path: Path, column: str | None, what: str) -> list[str]:
    """Return what stands in one column of a csv file, as it is written.

    Parameters
    ----------
    path : Path
        The file.
    column : str, optional
        Which column, if there are several; the first line is then a header.
    what : str
        What a message calls one of them.
    """
    lines = csv_lines(path, csv_delimiter(path))
    first = [cell.strip() for cell in next(lines)[1]]
    if column is None and len(first) > 1:
        raise DemixError(
            f"Expected one column of {what}s, but {path} has {len(first)} columns; choose one of "
            f"{', '.join(map(shortened, first[:10]))}."
        )
    place = 0 if column is None else find_column(column, first, path)
    cells = []
    for line, found in lines:
        cell = found[place].strip() if len(found) == len(first) else ""
        if not cell:
            raise DemixError(
                f"Expected a {what} in every line, but line {line} of {path} has none."
            )
        cells.append(cell)
    if column is None and (reads_as(float, first[0]) or first[0] in cells):
        cells.insert(0, first[0])
    if not cells:
        raise DemixError(f"Expected {what}s, but {path} has only a header.")
    return cells


def _from_cells(cells: list[str], path: Path) -> Labels:
    if all(reads_as(int, cell) for cell in cells):
        numbers = [int(cell) for cell in cells]
        beyond = next((number for number in numbers if not -_MOST <= number < _MOST), None)
        if beyond is not None:
            raise DemixError(
                f"Expected labels of at most 64 bits, but {path} holds {shortened(str(beyond))}; "
                "write them as text."
            )
        return Labels(np.array(numbers, dtype=np.int64))
    broken = next(
        (cell for cell in cells if reads_as(float, cell) and not reads_as(int, cell)), None
    )
    if broken is not None:
        raise DemixError(
            f"Expected labels that are whole numbers or text, but {path} holds "
            f"{shortened(broken)!r}."
        )
    return _numbered(np.array(cells))


def _numbered(text: np.ndarray) -> Labels:
    names, values = np.unique(text, return_inverse=True)
    return Labels(values.astype(np.int64), tuple(names.tolist()))
