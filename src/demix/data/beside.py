"""What stands beside the rows and is no data itself: pairs and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, warn
from demix._support.text import reason
from demix._support.validation import as_numpy
from demix.data.csv_files import read_csv
from demix.data.npy_files import is_table, read_npy


def read_pairs(path: str | Path, rows: int) -> Tensor:
    """Read pairs of row numbers from an ``.npy`` or ``.csv`` file; see :func:`check_pairs`."""
    return check_pairs(_read(Path(path), np.int64), rows)


def read_time(path: str | Path) -> np.ndarray:
    """Read the time ``(N,)`` of each row from an ``.npy`` or ``.csv`` file; see `check_time`.

    It stays float64: seconds of a clock do not fit into float32.
    """
    time = _read(Path(path), np.float64)
    if time.ndim == 2 and time.shape[1] == 1:
        time = time[:, 0]
    check_time(time)
    return np.array(time)


def check_pairs(pairs: Any, rows: int) -> Tensor:
    """Return pairs of row numbers as an int64 Tensor ``(P, 2)``, or say what is wrong with them.

    A :class:`DemixWarning` says when more than one in a hundred pairs is a row with itself, which
    says nothing of what may change between positives; more than half are refused.

    Parameters
    ----------
    pairs : array, list or Tensor (P, 2)
        Two rows that belong together in each line, numbered from 0.
    rows : int
        How many rows the data have.

    Examples
    --------
    >>> from demix.data.beside import check_pairs
    >>> check_pairs([[0, 1], [2, 3]], 4)
    tensor([[0, 1],
            [2, 3]])
    """
    array = _array(pairs, "pairs")
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise DemixError(
            f"Expected pairs (P, 2) of row numbers, but got an array of shape {array.shape}."
        )
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
            f"Expected pairs of two different rows, but {alone:.0%} of {len(array)} pair a row "
            "with itself."
        )
    if alone > 0.01:
        warn(
            f"{alone:.1%} of {len(array)} pairs pair a row with itself and teach nothing about "
            "what may change between positives; leave them out."
        )
    return torch.from_numpy(array.astype(np.int64))


def check_time(time: Any) -> None:
    """Refuse time that is not one finite moment for each row, or that runs backwards.

    Parameters
    ----------
    time : array, list or Tensor (N,)
        Numbers or ``numpy.datetime64``; equal moments may follow each other.

    Examples
    --------
    >>> from demix.data.beside import check_time
    >>> check_time([0.0, 0.5, 0.5, 2.0])
    """
    array = _array(time, "time")
    if array.ndim != 1 or len(array) == 0:
        raise DemixError(f"Expected one moment for each row, (N,), but time is {array.shape}.")
    if array.dtype.kind not in "iufM":
        raise DemixError(
            f"Expected time as numbers or numpy.datetime64, but it is of type {array.dtype}."
        )
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


def _read(path: Path, dtype: type[np.generic]) -> np.ndarray:
    return read_csv(path, dtype=dtype)[0] if is_table(path) else read_npy(path)


def _array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(as_numpy(values, name))
    except (TypeError, ValueError) as error:
        raise DemixError(f"Expected {name} as an array, but {reason(error)}.") from error
