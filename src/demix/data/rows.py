"""Where rows come from: memory, a file or a zarr store."""

from __future__ import annotations

import mmap
import os
import weakref
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from demix._support.errors import DemixError, reason
from demix._support.files import changed, open_regular, stamp_of

# Rows that are compared to tell whether a file is still the one that is mapped.
_COMPARED = 16


class Rows(Protocol):
    """Rows that are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, ...)``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of what is read."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index`` ``(B,)``, in its order, as a new array."""

    def check_unchanged(self) -> None:
        """Refuse rows that lie in files which were changed since they were opened."""


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
        """Return the rows at ``index``."""
        return self._array[index]

    def check_unchanged(self) -> None:
        """Do nothing: nobody else writes to our memory."""


class ZarrRows:
    """Rows of a zarr array; each access reads and decodes only the chunks that it needs."""

    def __init__(self, array: Any, source: str) -> None:
        self._array = array
        self._source = source
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        self._stamp = self._now()

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        return self._get(slice(start, stop))

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index``, read in the order of the chunks."""
        picked = np.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        order = np.argsort(index)
        picked[order] = self._get(index[order])
        return picked

    def check_unchanged(self) -> None:
        """Refuse a store whose files were changed."""
        if self._now() != self._stamp:
            raise changed(self._source)

    def _now(self) -> str | None:
        """Return the stamp of all files, if they are files of this machine."""
        root = getattr(self._array.store, "root", None)
        if not isinstance(root, str | Path):
            return None
        inside = os.walk(Path(root) / self._array.path)
        return stamp_of(os.path.join(folder, file) for folder, _, names in inside for file in names)

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
        self.dtype = rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        if self._first is not None:
            return self._rows.read(self._first + start, self._first + stop)
        return self._rows.pick(self._index[start:stop])

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index``."""
        return self._rows.pick(self._index[index])

    def check_unchanged(self) -> None:
        """Ask the others."""
        self._rows.check_unchanged()


class PickedColumns:
    """Some columns of other rows ``(N, d)``, by their numbers."""

    def __init__(self, rows: Rows, columns: np.ndarray) -> None:
        self._rows, self._columns = rows, columns
        self.shape = (rows.shape[0], len(columns))
        self.dtype = rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        return self._rows.read(start, stop)[:, self._columns]

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index``."""
        return self._rows.pick(index)[:, self._columns]

    def check_unchanged(self) -> None:
        """Ask the others."""
        self._rows.check_unchanged()


def array_rows(array: np.ndarray) -> ArrayRows | FileRows:
    """Return rows of an array, which may be a view of a mapped file."""
    plain = np.asarray(array)
    found = _file_below(array)
    if found is None or not plain.size:
        return ArrayRows(plain)
    path, start, mapping = found
    first = np.frombuffer(mapping, dtype=np.uint8).__array_interface__["data"][0]
    try:
        rows = FileRows(path, plain, start + plain.__array_interface__["data"][0] - first)
        some = np.linspace(0, len(plain) - 1, _COMPARED).astype(np.int64)
        same = rows.pick(some).tobytes() == plain[some].tobytes()
    except (OSError, DemixError):  # its name is gone, or it may be read no more; the map is there
        return ArrayRows(plain)
    # Another file may have taken its name meanwhile.
    return rows if same else ArrayRows(plain)


def _file_below(array: Any) -> tuple[Path, int, mmap.mmap] | None:
    """Return the file that an array is a view of, where its map begins, and the map."""
    file: tuple[Path, int] | None = None
    while array is not None:
        if isinstance(array, np.memmap):
            # What a user wrote to a map of his own is in no file.
            shared = array.mode in ("r", "r+", "w+") and array.filename is not None
            start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
            file = (Path(str(array.filename)), start) if shared else None
        if isinstance(array, mmap.mmap):
            return None if file is None else (*file, array)
        array = getattr(array, "base", None)
    return None


# Reading so many bytes takes as long as asking once more.
_ASK = 2**12
# A row whose numbers lie within so many bytes is read as a whole.
_NEAR = 2**16


class FileRows:
    """Rows of an array whose numbers lie in a file, in any order.

    They are read, not mapped: a map of a file that is cut short ends the process without a word,
    and its pages count as memory. A file that was changed since it was opened is refused.

    Parameters
    ----------
    path : Path
        The file.
    array : ndarray (N, ...)
        Shape, type and strides of the array; its numbers are not looked at.
    start : int
        Where its first number lies in the file.
    """

    def __init__(self, path: Path, array: np.ndarray, start: int) -> None:
        self.path, self.shape, self.dtype = path, array.shape, array.dtype
        self._start, self._strides = start, array.strides
        with open_regular(path) as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._stamp = self._now()
        # In a column-major file, which frames often become, a row is scattered all over.
        whole = array[0].nbytes
        self._scattered = _extent(array.shape[1:], array.strides[1:], array.itemsize)[1] > max(
            _NEAR, 2 * whole
        )

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start..stop - 1``."""
        return self._rows(np.arange(start, stop))

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the rows at ``index``, read in the order of the file."""
        order = np.argsort(index)
        picked = np.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        picked[order] = self._rows(index[order])
        return picked

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when it was opened."""
        if self._now() != self._stamp:
            raise changed(self.path)

    def _rows(self, index: np.ndarray) -> np.ndarray:
        """Return rows in ascending order."""
        self.check_unchanged()
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
        """Return parts of rows, the numbers of which lie together; ``first`` is row 0's."""
        low, span = _extent(shape, strides, self.dtype.itemsize)
        step = self._strides[0]
        ends = int(index[0]), int(index[-1])
        size = (ends[1] - ends[0]) * abs(step) + span
        if size <= len(index) * max(_ASK, 2 * span):
            lowest = ends[0] if step > 0 else ends[1]
            raw = bytearray(size)
            self._fill(memoryview(raw), first + lowest * step + low)
            offset = (ends[0] - lowest) * step - low
            count = ends[1] - ends[0] + 1
            near: np.ndarray = np.ndarray(
                (count, *shape), self.dtype, raw, offset, (step, *strides)
            )
            return near if count == len(index) else near[index - ends[0]]
        raw = bytearray(len(index) * span)
        view = memoryview(raw)
        for place, row in enumerate(index.tolist()):
            self._fill(view[place * span : (place + 1) * span], first + row * step + low)
        return np.ndarray((len(index), *shape), self.dtype, raw, -low, (span, *strides))

    def _fill(self, view: memoryview, offset: int) -> None:
        """Read bytes from a place of the file, as many as a view holds."""
        while view:
            if hasattr(os, "preadv"):
                got = os.preadv(self._file, [view], offset)
            else:  # pragma: no cover  not on this system
                os.lseek(self._file, offset, os.SEEK_SET)
                part = os.read(self._file, len(view))
                got = len(part)
                view[:got] = part
            if got == 0:
                raise changed(self.path)
            view, offset = view[got:], offset + got

    def _now(self) -> tuple[Any, ...]:
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, int]:
    """Return from where on the numbers of a row lie, and over how many bytes."""
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = sum(min(0, end) for end in ends)
    return low, sum(max(0, end) for end in ends) - low + size
