"""Where rows come from: memory, a file or a zarr store."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import changed, stamp_of
from demix._support.text import reason
from demix.data.file_rows import FileRows

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
