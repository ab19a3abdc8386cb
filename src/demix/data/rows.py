"""The contract of all readers, rows that can be sliced; and rows of arrays and mapped files."""

import mmap
import os
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import changed, open_regular

# Rows that are compared to tell whether a file is still the one that is mapped.
_COMPARED = 16
# Reading so many bytes takes as long as one more system call.
_CALL = 2**12
# A row whose numbers lie within so many bytes is read as a whole.
_NEAR = 2**16


class Rows(ABC):
    """Rows ``(N, ...)`` of one type that are read when they are indexed.

    ``rows[start:stop]`` and ``rows[index]``, with ``index`` ``(B,)`` of int64 in any order, return
    an array ``(B, ...)``; that of a slice may be a view.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: str | Path
    stamp: object = None
    """What :meth:`now` returned when the rows were opened."""

    @abstractmethod
    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        """Return some rows."""

    def now(self) -> object:
        """Return what changes with the files of the rows, if there are any."""
        return None

    def check_unchanged(self) -> None:
        """Raise :class:`DemixError` if a file was changed since it was opened."""
        if self.now() != self.stamp:
            raise changed(self.source)


class ArrayRows(Rows):
    """Rows of an array in memory."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        return self._array[index]


class PickedRows(Rows):
    """Some rows, or some columns of rows ``(N, d)``, of other rows, by their numbers."""

    def __init__(
        self, rows: Rows, index: np.ndarray | None = None, columns: np.ndarray | None = None
    ) -> None:
        self._rows, self._index, self._columns = rows, index, columns
        length = rows.shape[0] if index is None else len(index)
        width = rows.shape[1:] if columns is None else (len(columns),)
        self.shape, self.dtype = (length, *width), rows.dtype

    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        picked = self._rows[index if self._index is None else self._index[index]]
        return picked if self._columns is None else picked[:, self._columns]

    def check_unchanged(self) -> None:
        """Ask the other rows."""
        self._rows.check_unchanged()


class StoredRows(Rows):
    """Rows on a disk, which are read in the order in which they lie there."""

    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        if isinstance(index, slice):
            return self._read(index)
        order = np.argsort(index)
        picked = np.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        picked[order] = self._read(index[order])
        return picked

    @abstractmethod
    def _read(self, index: slice | np.ndarray) -> np.ndarray:
        """Return rows in ascending order."""


class FileRows(StoredRows):
    """Rows of an array whose numbers lie in a file, in any memory order.

    They are read, not mapped: if a mapped file is truncated, the kernel kills the process, and
    mapped pages count as memory. A file that was changed since it was opened is refused. Only
    shape, type and strides of ``array`` are used; its first number lies at ``start``.
    """

    def __init__(self, path: Path, array: np.ndarray, start: int) -> None:
        self.source, self.shape, self.dtype = path, array.shape, array.dtype
        self._start, self._strides = start, array.strides
        with open_regular(path) as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self.stamp = self.now()
        # In a column-major file, as often written from frames, a row is scattered over the file.
        span = _extent(array.shape[1:], array.strides[1:], array.itemsize)[1]
        self._scattered = span > max(_NEAR, 2 * array[0].nbytes)

    def now(self) -> object:
        """Return size and time of the last change."""
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns

    def _read(self, index: slice | np.ndarray) -> np.ndarray:
        self.check_unchanged()
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[0]))
        if not len(index):
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        if not self._scattered:
            return self._strip(index, self._start, self.shape[1:], self._strides[1:])
        rows = np.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        for place in np.ndindex(self.shape[1:]):
            first = self._start + int(np.dot(place, self._strides[1:]))
            rows[(slice(None), *place)] = self._strip(index, first, (), ())
        return rows

    def _strip(
        self, index: np.ndarray, first: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> np.ndarray:
        """Return parts of rows whose numbers lie together; that of row 0 begins at ``first``."""
        low, span = _extent(shape, strides, self.dtype.itemsize)
        step, ends = self._strides[0], (int(index[0]), int(index[-1]))
        size = (ends[1] - ends[0]) * abs(step) + span
        if size <= len(index) * max(_CALL, 2 * span):
            lowest = ends[0] if step > 0 else ends[1]
            raw = self._bytes(bytearray(size), [first + lowest * step + low], size)
            offset, count = (ends[0] - lowest) * step - low, ends[1] - ends[0] + 1
            got: np.ndarray = np.ndarray((count, *shape), self.dtype, raw, offset, (step, *strides))
            return got if count == len(index) else got[index - ends[0]]
        offsets = [first + row * step + low for row in index.tolist()]
        raw = self._bytes(bytearray(len(index) * span), offsets, span)
        return np.ndarray((len(index), *shape), self.dtype, raw, -low, (span, *strides))

    def _bytes(self, raw: bytearray, offsets: list[int], size: int) -> bytearray:
        """Fill ``raw`` with so many bytes from each of these offsets of the file."""
        whole = memoryview(raw)
        for place, offset in enumerate(offsets):
            view = whole[place * size : (place + 1) * size]
            while view:
                if hasattr(os, "preadv"):
                    got = os.preadv(self._file, [view], offset)
                else:  # pragma: no cover  not on this system
                    os.lseek(self._file, offset, os.SEEK_SET)
                    part = os.read(self._file, len(view))
                    got = len(part)
                    view[:got] = part
                if got == 0:
                    raise changed(self.source)
                view, offset = view[got:], offset + got
        return raw


def array_rows(array: np.ndarray) -> Rows:
    """Return the rows of an array, which may be a view of a mapped file."""
    plain = np.asarray(array)
    found = _file_below(array)
    if found is None or not plain.size or not plain.ndim:
        return ArrayRows(plain)
    path, start, mapping = found
    first = np.frombuffer(mapping, dtype=np.uint8).__array_interface__["data"][0]
    try:
        rows = FileRows(path, plain, start + plain.__array_interface__["data"][0] - first)
        some = np.linspace(0, len(plain) - 1, _COMPARED).astype(np.int64)
        same = rows[some].tobytes() == plain[some].tobytes()
    except (OSError, DemixError):  # the file was removed or may not be read; the map still works
        return ArrayRows(plain)
    # Another file may have taken its name meanwhile.
    return rows if same else ArrayRows(plain)


def _file_below(array: Any) -> tuple[Path, int, mmap.mmap] | None:
    """Return the file that an array is a view of, where its map begins, and the map."""
    file: tuple[Path, int] | None = None
    while array is not None:
        if isinstance(array, np.memmap):
            # What a user wrote to a private map is in no file.
            shared = array.mode in ("r", "r+", "w+") and array.filename is not None
            start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
            file = (Path(str(array.filename)), start) if shared else None
        if isinstance(array, mmap.mmap):
            return None if file is None else (*file, array)
        array = getattr(array, "base", None)
    return None


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, int]:
    """Return the lowest offset of a row's numbers, and over how many bytes they lie."""
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = sum(min(0, end) for end in ends)
    return low, sum(max(0, end) for end in ends) - low + size
