"""Pairs, time and labels of rows: what supervises a fit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, demix_errors, shortened, warn
from demix._support.validation import as_numpy
from demix.data.csv_files import read_csv, reads_as, refuse_missing
from demix.data.formats import CSV, TABLES, known_suffix
from demix.data.moments import moments
from demix.data.names import read_cells
from demix.data.npy_files import read_whole


@dataclass(frozen=True, eq=False)
class Labels:
    """The class of each row, ``values`` ``(N,)`` of int64; text as its place among ``names``."""

    values: np.ndarray
    names: tuple[str, ...] | None = None

    def as_given(self) -> np.ndarray:
        """Return numbers, or text as objects: one long text would widen a column of text."""
        if self.names is None:
            return self.values
        return np.array(self.names, dtype=object)[self.values]


def read_pairs(path: str | Path, rows: int) -> Tensor:
    """Read pairs of row numbers from an ``.npy`` or ``.csv`` file; see :func:`check_pairs`."""
    path = Path(path)
    table = known_suffix(path, "an .npy or .csv", ".npy", *CSV) in CSV
    return check_pairs(read_csv(path, whole=True)[0] if table else read_whole(path), rows)


def read_time(path: str | Path, *, column: str | None = None) -> np.ndarray:
    """Read the time ``(N,)`` of each row from an ``.npy`` file or a table; see `check_time`.

    A table holds numbers or dates, as ISO 8601 writes them, as ``31.12.2024 13:45``, or with
    slashes if days and months can be told apart; ``column`` says where.
    """
    path = Path(path)
    found = _column(path, column, "moment")
    time = moments(found, path) if isinstance(found, list) else found
    check_time(time)
    return np.array(time)


def read_labels(path: str | Path, *, column: str | None = None) -> Labels:
    r"""Read one label for each row; text as numbers, with the names in alphabetical order.

    Parameters
    ----------
    path : str or Path
        An ``.npy`` file ``(N,)`` or ``(N, 1)`` of whole numbers or text, or a ``.csv``, ``.tsv`` or
        ``.parquet`` file. The first line of a csv file is a header if it is no number and stands
        nowhere below.
    column : str, optional
        Which column of a table, if there are several.

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
    array = _column(path, column, "label")
    if isinstance(array, list):
        return _from_cells(array, path)
    if array.ndim != 1 or len(array) == 0:
        raise DemixError(f"Expected one label per row, (N,), but {path} has shape {array.shape}.")
    if array.dtype.kind == "U":
        return _numbered(array, path)
    if array.dtype.kind == "f":
        return _from_cells(list(map(str, array.tolist())), path)
    if array.dtype.kind not in "biu":
        raise DemixError(f"Expected labels of whole numbers or text, but {path} has {array.dtype}.")
    return Labels(array.astype(np.int64))


def check_pairs(pairs: Any, rows: int) -> Tensor:
    """Return pairs of numbers of so many ``rows``, from 0, as an int64 Tensor ``(P, 2)``.

    A :class:`DemixWarning` says when more than 1 % of the pairs are a row with itself, from which
    nothing can be learnt about the differences of positives; more than half are refused.
    """
    array = _array(pairs, "pairs")
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise DemixError(f"Expected pairs (P, 2) of row numbers, but got shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise DemixError(
            f"Expected pairs of whole row numbers, but they are of type {array.dtype}; convert "
            "them with .astype(int)."
        )
    outside = ((array < 0) | (array >= rows)).any(axis=1)
    if outside.any():
        first = int(outside.argmax())
        raise DemixError(
            f"Expected pairs of rows 0..{rows - 1}, but {int(outside.sum())} of {len(array)} point "
            f"outside the data, the first of them pair {first}, {tuple(array[first].tolist())}."
        )
    alone = float((array[:, 0] == array[:, 1]).mean())
    if alone > 0.5:
        raise DemixError(
            f"Expected pairs of two rows, but {alone:.0%} of {len(array)} pair a row with itself."
        )
    if alone > 0.01:
        warn(
            f"{alone:.1%} of {len(array)} pairs pair a row with itself and teach nothing about "
            "what may change between positives; leave them out."
        )
    return torch.from_numpy(array.astype(np.int64))


def check_time(time: Any) -> None:
    """Raise :class:`DemixError` unless time ``(N,)`` is a finite moment for each row, in order.

    Moments are numbers or ``numpy.datetime64``; equal ones may follow each other.
    """
    array = _array(time, "time")
    if array.ndim != 1 or len(array) == 0:
        raise DemixError(f"Expected one moment for each row, (N,), but time is {array.shape}.")
    if array.dtype.kind not in "iufM":
        raise DemixError(f"Expected time as numbers or numpy.datetime64, but got {array.dtype}.")
    bad = ~np.isfinite(array)
    if bad.any():
        first = int(bad.argmax())
        raise DemixError(
            f"Expected finite time, but row {first} (counted from 0) is at {array[first]}; remove "
            "it or fill it in."
        )
    back = array[1:] < array[:-1]
    if back.any():
        row = int(back.argmax()) + 1
        raise DemixError(
            f"Expected rows in the order of time, but row {row} (counted from 0) is at "
            f"{array[row]} after {array[row - 1]}; sort rows and time together."
        )


def _column(path: Path, column: str | None, what: str) -> np.ndarray | list[str]:
    """Return a column of a table as text, or an ``.npy`` file, ``(N, 1)`` as ``(N,)``."""
    if known_suffix(path, "an .npy, .csv or .parquet", ".npy", *TABLES) in TABLES:
        return read_cells(path, column, what)
    if column is not None:
        raise DemixError(f"A column is chosen from a table, but {path} is an .npy file.")
    array = read_whole(path)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _array(values: Any, name: str) -> np.ndarray:
    problem = f"Expected {name} as an array, but got a {type(values).__name__} that is none"
    with demix_errors(problem, "convert it with numpy.array"):
        return np.asarray(as_numpy(values, name))


def _from_cells(cells: list[str], path: Path) -> Labels:
    texts = set(cells)
    known = {t: int(t) if reads_as(int, t) else float(t) for t in texts if reads_as(float, t)}
    if len(known) == len(texts) and all(number == number // 1 for number in known.values()):
        if len(set(known.values())) < len(known):
            raise DemixError(f"Expected one spelling of a label, but {path} has such as 1 and 01.")
        problem = f"Expected labels of at most 64 bits, but {path} holds others"
        with demix_errors(problem, "write them as text"):
            return Labels(np.array([int(known[cell]) for cell in cells], dtype=np.int64))
    broken = next((c for c in cells if reads_as(float, c) and not reads_as(int, c)), None)
    if broken is not None:
        got = shortened(broken)
        raise DemixError(f"Expected labels of whole numbers or text, but {path} holds {got!r}.")
    return _numbered(np.array(cells, dtype=object), path)


def _numbered(text: np.ndarray, path: Path) -> Labels:
    names, values = np.unique(text, return_inverse=True)
    refuse_missing(text.tolist(), f"a label in {path}")
    return Labels(values.astype(np.int64), tuple(names.tolist()))
