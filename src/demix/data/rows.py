"""The contract of all readers, rows that can be sliced; and rows of arrays and mapped files."""

import math
import mmap
import os
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import changed, open_regular

_COMPARED = 16  # rows that are compared to tell whether a file is still the one that is mapped
_CALL = 2**12  # reading so many bytes takes as long as one more system call


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
    doubt: str | None = None
    """Why their order may not be the one in which a user counts them."""
    held: Any = None
    """The array or the open file that they are read from, if there is only one."""

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
        self.held, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        return self.held[index]


class PickedRows(Rows):
    """Some rows, or some columns of rows ``(N, d)``, of other rows, by their numbers."""

    def __init__(
        self, rows: Rows, index: np.ndarray | None = None, columns: np.ndarray | None = None
    ) -> None:
        self._rows, self._index, self._columns = rows, index, columns
        length = rows.shape[0] if index is None else len(index)
        width = rows.shape[1:] if columns is None else (len(columns),)
        self.shape, self.dtype = (length, *width), rows.dtype
        self.doubt, self.held = rows.doubt, rows.held

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
    """Rows of an array whose numbers lie in a file without gaps, row by row or column by column.

    They are read, not mapped: if a mapped file is truncated, the kernel kills the process, and
    mapped pages count as memory. Only shape, type and order of ``array`` are used.
    """

    def __init__(self, path: Path, array: np.ndarray, start: int) -> None:
        self.source, self.shape, self.dtype = path, array.shape, array.dtype
        self._start, self._by_rows = start, array.flags.c_contiguous
        with open_regular(path) as file:
            self.held = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.held)
        self.stamp = self.now()

    def now(self) -> object:
        """Return size and time of the last change."""
        found = os.fstat(self.held)
        return found.st_size, found.st_mtime_ns

    def _read(self, index: slice | np.ndarray) -> np.ndarray:
        self.check_unchanged()
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[0]))
        rows = np.empty((len(index), *self.shape[1:]), dtype=self.dtype, order="F")
        if not len(index):
            return rows
        if self._by_rows:
            return self._strip(index, self._start, self.shape[1:])
        # In a column-major file, as often written from frames, a row is scattered over the file.
        for place in np.ndindex(self.shape[:0:-1]):
            column = int(np.ravel_multi_index(place, self.shape[:0:-1]))
            first = self._start + column * self.shape[0] * self.dtype.itemsize
            rows[(slice(None), *place[::-1])] = self._strip(index, first, ())
        return rows

    def _strip(self, index: np.ndarray, first: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return entries of this shape by number; number 0 begins at ``first``."""
        size, low = math.prod(shape) * self.dtype.itemsize, int(index[0])
        span = int(index[-1]) - low + 1
        if span * size <= len(index) * max(_CALL, 2 * size):
            raw = self._bytes(bytearray(span * size), [first + low * size], span * size)
            found = np.frombuffer(raw, self.dtype).reshape(span, *shape)
            gapless = len(index) == span and bool((np.diff(index) == 1).all())
            return found if gapless else found[index - low]
        offsets = [first + row * size for row in index.tolist()]
        raw = self._bytes(bytearray(len(index) * size), offsets, size)
        return np.frombuffer(raw, self.dtype).reshape(len(index), *shape)

    def _bytes(self, raw: bytearray, offsets: list[int], size: int) -> bytearray:
        """Fill ``raw`` with so many bytes from each of these offsets of the file."""
        whole = memoryview(raw)
        for place, offset in enumerate(offsets):
            view = whole[place * size : (place + 1) * size]
            while view:
                if hasattr(os, "preadv"):
                    got = os.preadv(self.held, [view], offset)
                else:  # pragma: no cover  not on this system
                    os.lseek(self.held, offset, os.SEEK_SET)
                    part = os.read(self.held, len(view))
                    got = len(part)
                    view[:got] = part
                if got == 0:
                    raise changed(self.source)
                view, offset = view[got:], offset + got
        return raw


def array_rows(array: np.ndarray) -> Rows:
    """Return the rows of an array, which may be a view of a mapped file."""
    plain, found = np.asarray(array), _file_below(array)
    whole = plain.flags.c_contiguous or plain.flags.f_contiguous
    if found is None or not whole or not plain.size or not plain.ndim:
        return ArrayRows(plain)
    path, start, mapping = found
    first = np.frombuffer(mapping, dtype=np.uint8).__array_interface__["data"][0]
    try:
        rows = FileRows(path, plain, start + plain.__array_interface__["data"][0] - first)
        some = np.linspace(0, len(plain) - 1, _COMPARED).astype(np.int64)
        same = rows[some].tobytes() == plain[some].tobytes()
    except (OSError, DemixError):  # the file was removed or may not be read; the map still works
        return ArrayRows(plain)
    return rows if same else ArrayRows(plain)  # or another file took its name


def shares(array: np.ndarray, held: Any) -> bool:
    """Whether an array lies in the memory or file of another one, or in an open file."""
    if isinstance(held, np.ndarray) and np.may_share_memory(array, held):
        return True
    own, file = ((x if isinstance(x, int) else (_file_below(x) or [""])[0]) for x in (array, held))
    with suppress(OSError):  # one of them has no file, or it was removed
        return os.path.samefile(own, file)
    return False


def _file_below(array: Any) -> tuple[Path, int, mmap.mmap] | None:
    """Return the file that an array is a view of, where its map begins, and the map."""
    file: tuple[Path, int] | None = None
    while array is not None:
        if isinstance(array, np.memmap):
            # What a user wrote to a private map is in no file.
            shared = array.mode in ("r", "r+", "w+") and array.filename is not None
            offset = array.offset or 0  # what was computed from a map is none
            start = offset - offset % mmap.ALLOCATIONGRANULARITY
            file = (Path(str(array.filename)), start) if shared else None
        if isinstance(array, mmap.mmap):
            return None if file is None else (*file, array)
        array = getattr(array, "base", None)
    return None
