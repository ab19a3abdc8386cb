"""Where rows come from: memory, a mapped file or a zarr store."""

from __future__ import annotations

import mmap
from typing import Any, Protocol

import numpy as np

from demix.data.formats import reason
from demix.errors import DemixError

# One page fault maps up to 64 kB around it, and a mapped page counts as memory until it is let go.
_FAULT = 2**16
_MAPPED = 2**25
# A system may map pages of this size around what is read in order.
_HUGE = 2**21


class Rows(Protocol):
    """Rows that are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, ...)``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of what :meth:`read` returns."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1`` as they are kept."""

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` ``(B,)``, in its order, as new float32 ``(B, ...)``."""


def as_float32(array: np.ndarray, *, copy: bool = True) -> np.ndarray:
    """Return float32 numbers; what is too large becomes infinite, which the checks then find."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32, order="C", copy=copy)


class ArrayRows:
    """Rows of an array in memory."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return a view of rows ``start..stop - 1``."""
        return self._array[start:stop]

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` as float32."""
        return as_float32(self._array[index], copy=False)


class MappedRows:
    """Rows of an array whose pages come from a file.

    Pages that were read are let go again: otherwise one pass over a file would hold all of it.
    """

    def __init__(self, array: np.ndarray, mapping: mmap.mmap) -> None:
        self._array = array
        self._mapping = mapping
        self.shape = array.shape
        self.dtype = array.dtype
        # In a column-major file, which frames often become, a row is scattered all over.
        self._scattered = abs(array.strides[0]) < max(map(abs, array.strides[1:]))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return a copy of rows ``start..stop - 1``."""
        if not self._scattered:
            rows = self._array[start:stop].copy()
            self._let_go()
            return rows
        rows = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        step = max(1, _MAPPED // (rows[:, :1].nbytes + _HUGE))
        places = list(np.ndindex(self.shape[1:]))
        for number, place in enumerate(places):
            rows[(slice(None), *place)] = self._array[(slice(start, stop), *place)]
            if (number + 1) % step == 0 or number + 1 == len(places):
                self._let_go()
        return rows

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` as float32, read in the order of the file."""
        order = np.argsort(index)
        picked = np.empty((len(index), *self.shape[1:]), dtype=np.float32)
        picked[order] = self._columns(index[order]) if self._scattered else self._rows(index[order])
        return picked

    def _rows(self, index: np.ndarray) -> np.ndarray:
        rows = np.empty((len(index), *self.shape[1:]), dtype=np.float32)
        step = max(1, _MAPPED // (self._array[0].nbytes + _FAULT))
        for start in range(0, len(index), step):
            part = slice(start, start + step)
            rows[part] = as_float32(self._array[index[part]], copy=False)
            self._let_go()
        return rows

    def _columns(self, index: np.ndarray) -> np.ndarray:
        rows = np.empty((len(index), *self.shape[1:]), dtype=np.float32)
        column = len(self._array) * self.dtype.itemsize
        step = len(self._array) if column <= _MAPPED else _MAPPED // _FAULT
        mapped = 0
        for start in range(0, len(index), step):
            part = slice(start, start + step)
            for place in np.ndindex(self.shape[1:]):
                numbers = self._array[(index[part], *place)]
                rows[(part, *place)] = as_float32(numbers, copy=False)
                mapped += min(column, len(numbers) * _FAULT)
                if mapped >= _MAPPED:
                    self._let_go()
                    mapped = 0
        self._let_go()
        return rows

    def _let_go(self) -> None:
        self._mapping.madvise(mmap.MADV_DONTNEED)


class ZarrRows:
    """Rows of a zarr array; each access reads and decodes only the chunks that it needs."""

    def __init__(self, array: Any, source: str) -> None:
        self._array = array
        self._source = source
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        return self._get(slice(start, stop))

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` as float32, read in the order of the chunks."""
        picked = np.empty((len(index), *self.shape[1:]), dtype=np.float32)
        order = np.argsort(index)
        picked[order] = as_float32(self._get(index[order]), copy=False)
        return picked

    def _get(self, rows: slice | np.ndarray) -> np.ndarray:
        try:
            return np.asarray(self._array.oindex[rows])
        except Exception as error:  # every codec fails in its own way
            raise DemixError(
                f"Expected readable chunks in {self._source}, but one of them is damaged "
                f"({reason(error)}); write the store again."
            ) from error


class PickedRows:
    """Some rows of others, by their numbers; those that lie side by side are read as they are."""

    def __init__(self, rows: Rows, index: np.ndarray) -> None:
        self._rows, self._index = rows, index
        self._first = int(index[0]) if len(index) and bool((np.diff(index) == 1).all()) else None
        self.shape = (len(index), *rows.shape[1:])
        self.dtype = np.dtype(np.float32) if self._first is None else rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        if self._first is not None:
            return self._rows.read(self._first + start, self._first + stop)
        return self._rows.pick(self._index[start:stop])

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` as float32."""
        return self._rows.pick(self._index[index])


def array_rows(array: np.ndarray) -> ArrayRows | MappedRows:
    """Return rows of an array, which may be a view of a mapped file."""
    mapping = _mapping_below(array)
    plain = np.asarray(array)
    return ArrayRows(plain) if mapping is None else MappedRows(plain, mapping)


def _mapping_below(array: Any) -> mmap.mmap | None:
    """Return the mapping that an array is a view of, if its pages may be let go."""
    shared = False
    while array is not None:
        if isinstance(array, np.memmap):
            # Letting go of a copy-on-write page would undo what the user wrote to it.
            shared = array.mode in ("r", "r+", "w+")
        if isinstance(array, mmap.mmap):
            return array if shared and hasattr(array, "madvise") else None
        array = getattr(array, "base", None)
    return None
