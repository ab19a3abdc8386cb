"""Rows of an array in a file, read when they are asked for."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.files import changed, open_regular

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
