"""Images with known factors, in memory, in an HDF5 file or in an ``.npz`` archive."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from demix._support.errors import DemixError, demix_errors, reason
from demix._support.memory import check_memory
from demix.data.formats import check_kind, choose_array
from demix.data.npy_files import DEFLATED, Header, open_member, read_header
from demix.data.rows import array_rows
from demix.papers.digests import digest_of

Kind = Literal["categorical", "ordinal", "periodic", "continuous"]


@dataclass(frozen=True)
class FactorColumn:
    """What a column of factors holds.

    Parameters
    ----------
    name : str
        What the data set calls it.
    kind : "categorical", "ordinal", "periodic" or "continuous"
        Names without an order, levels in an order, numbers that come round again, or numbers.
    levels : tuple of str
        Names of the values 0, 1, 2 and so on of a category, where it has some.
    period : float, optional
        After which a periodic factor repeats.
    within : str, optional
        The category outside of which values cannot be compared. Photographs of an object on a
        turntable show angles from wherever it was put: those of two objects have nothing in common.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    period: float | None = None
    within: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "periodic") != (self.period is not None):
            raise DemixError(
                f"A period belongs to a periodic factor, but {self.name!r} is {self.kind} with "
                f"period {self.period}; give both or neither."
            )


Progress = Callable[[int, int, str], None]
"""Called with how much is done, how much there is to do, and of what."""


class Pixels(ABC):
    """Images ``(N, H, W, C)``, read when asked for; ``in_chunks``, a few take as long as all."""

    shape: tuple[int, int, int, int]
    in_chunks = False

    @abstractmethod
    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows`` ``(B,)``, in their order: new uint8 ``(B, H, W, C)``."""


class ArrayPixels(Pixels):
    """Images of an array ``(N, H, W)`` or ``(N, H, W, C)``, in memory or in a file."""

    def __init__(self, array: np.ndarray, *, gain: int = 1) -> None:
        self._rows, self._gain = array_rows(array), gain
        channels = array.shape[3] if array.ndim == 4 else 1
        self.shape = (*array.shape[:3], channels)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``, times the gain."""
        picked = self._rows[rows].astype(np.uint8).reshape(len(rows), *self.shape[1:])
        if int(picked.max(initial=0)) * self._gain > 255:
            raise DemixError(
                f"Expected images of numbers up to {255 // self._gain}, but one has "
                f"{picked.max()}; fetch the file again."
            )
        return picked if self._gain == 1 else np.multiply(picked, self._gain, out=picked)


class BitPixels(Pixels):
    """Images of black and white as :func:`numpy.packbits` packs each, an eighth of their size."""

    def __init__(self, bits: np.ndarray, height: int, width: int) -> None:
        self._bits = bits
        self.shape = (len(bits), height, width, 1)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``: 0 and 255."""
        flat = np.unpackbits(self._bits[rows], axis=1, count=math.prod(self.shape[1:]))
        return (255 * flat).reshape(len(rows), *self.shape[1:])


class H5Pixels(Pixels):
    """Images ``(N, H, W, C)`` of an open HDF5 file; rows that lie close together are one slice."""

    in_chunks = True
    _NEAR = 256

    def __init__(self, dataset: Any, source: str) -> None:
        self._dataset, self._source = dataset, source
        self.shape = dataset.shape
        self._near = max(self._NEAR, (dataset.chunks or (1,))[0])
        needed = 2 * min(self._near, self.shape[0]) * math.prod(self.shape[1:])
        check_memory(needed, f"Reading {source}", "fetch it again")

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``."""
        images = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        order = np.argsort(rows, kind="stable")
        edges = np.flatnonzero(np.diff(rows[order] // self._near)) + 1
        for part in np.split(order, edges) if len(rows) else []:
            first, last = rows[part[0]], rows[part[-1]]
            try:
                block = self._dataset[first : last + 1]
            except Exception as error:  # HDF5 fails in many ways
                raise DemixError(
                    f"Expected readable images in {self._source}, but rows {first} to {last} are "
                    f"damaged ({reason(error)}); fetch it again."
                ) from error
            images[part] = block[rows[part] - first]
        return images


_AT_ONCE = 1000  # rows that are read at a time, so that a bar can move


@dataclass(frozen=True, eq=False)
class FactorImages:
    """Images ``(N, H, W, C)`` of bytes, read row by row, and what they show.

    Parameters
    ----------
    name : str
        The data set, such as ``dsprites``.
    pixels : Pixels
        Where the images come from.
    columns : tuple of FactorColumn
        What the ``k`` factors are.
    values : ndarray (N, k), float32
        Their values; categories are numbered from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers import FactorColumn, FactorImages
    >>> from demix.papers.datasets.factor_images import ArrayPixels
    >>> dots = np.zeros((6, 4, 4, 1), dtype=np.uint8)
    >>> column = FactorColumn("shape", "categorical", levels=("dot", "hole"))
    >>> known = FactorImages("dots", ArrayPixels(dots), (column,), np.zeros((6, 1), np.float32))
    >>> len(known), known.shape, known.read([5, 0]).shape
    (6, (1, 4, 4), (2, 4, 4, 1))
    """

    name: str
    pixels: Pixels
    columns: tuple[FactorColumn, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.shape != (self.pixels.shape[0], len(self.columns)):
            raise DemixError(
                f"Every image of {self.name} must have a value of each of its {len(self.columns)} "
                f"factors, but there are {self.pixels.shape[0]} images and values of shape "
                f"{self.values.shape}; is the file complete?"
            )
        if not np.isfinite(self.values).all():
            raise DemixError(
                f"Expected a finite number for each factor of {self.name}, but some are not; fetch "
                "the file again."
            )
        for column, numbers in zip(self.columns, self.values.T, strict=True):
            if column.levels and not np.isin(numbers, range(len(column.levels))).all():
                raise DemixError(
                    f"Expected whole numbers below {len(column.levels)} as {column.name!r} of "
                    f"{self.name}, which has so many levels, but some are not; fetch it again."
                )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        _, height, width, channels = self.pixels.shape
        return channels, height, width

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def digest(self) -> str:
        """A checksum of factors and images, all of which are read."""
        rows = np.array_split(np.arange(len(self)), -(-len(self) // _AT_ONCE))
        return digest_of(chain([repr(self.columns), self.values], map(self.read, rows)))

    def read(self, rows: Any) -> np.ndarray:
        """Return the images at ``rows`` ``(B,)``, in their order: uint8 ``(B, H, W, C)``."""
        return self.pixels.read(np.asarray(rows, dtype=np.intp))

    def column(self, name: str) -> FactorColumn:
        """Return what the factor of that name is."""
        if name not in self.names:
            raise DemixError(
                f"The factors of {self.name} are {', '.join(self.names)}, but {name!r} was asked "
                "for."
            )
        return self.columns[self.names.index(name)]

    def factor(self, name: str) -> np.ndarray:
        """Return the values ``(N,)`` of the factor of that name."""
        return self.values[:, self.columns.index(self.column(name))]

    def only(
        self, rows: Any, *, callback: Progress = lambda done, total, what: None
    ) -> FactorImages:
        """Return some of the images, read into memory."""
        index = np.asarray(rows, dtype=np.intp)
        order = np.argsort(index)  # in the order in which they lie in the file
        needed = len(index) * math.prod(self.pixels.shape[1:])
        check_memory(needed, f"Reading {len(index)} images of {self.name}", "take a smaller scale")
        images = np.empty((len(index), *self.pixels.shape[1:]), dtype=np.uint8)
        for start in range(0, len(index), _AT_ONCE):
            callback(start, len(index), f"images of {self.name}")
            part = order[start : start + _AT_ONCE]
            images[part] = self.pixels.read(index[part])
        callback(len(index), len(index), f"images of {self.name}")
        return replace(self, pixels=ArrayPixels(images), values=self.values[index])


def grid(sizes: tuple[int, ...]) -> np.ndarray:
    """Return all combinations ``(N, k)`` of whole numbers below ``sizes``, the last one fastest."""
    places = np.indices(sizes, dtype=np.float32)
    return places.reshape(len(sizes), -1).T.copy()


# A file in an archive: 26 bytes, then the lengths of its name and of what comes after that.
_LENGTHS, _LOCAL = 26, 30
_BLOCK = 64 * 2**20


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an archive."""
    check_kind(path, "a zip archive (.npz)")
    with _whole(path), ZipFile(path) as archive:
        return [name[:-4] for name in archive.namelist() if name.endswith(".npy")]


def read_array(path: Path, key: str) -> np.ndarray:
    """Read an array of numbers into memory."""
    name = choose_array(array_names(path), key, path)
    with _whole(path), ZipFile(path) as archive, open_member(archive, f"{name}.npy") as file:
        # Whole, so that the archive's checksum is compared.
        _check_claim(_header(file, path, key), archive.getinfo(f"{name}.npy"), path)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def image_array(path: Path, key: str, *, callback: Progress, gain: int = 1) -> Pixels:
    """Return images of bytes, multiplied by ``gain``; those that are not compressed stay there."""
    name = choose_array(array_names(path), key, path)
    with _whole(path), path.open("rb") as raw, ZipFile(raw) as archive:
        entry = archive.getinfo(f"{name}.npy")
        with open_member(archive, entry.filename) as file:
            shape, fortran, dtype = header = _header(file, path, key)
            if dtype != np.uint8 or len(shape) not in (3, 4) or fortran or 0 in shape:
                order = " in column-major order" if fortran else ""
                raise DemixError(
                    f"Expected images (N, H, W) or (N, H, W, C) of uint8 in {key!r} of {path}, but "
                    f"it holds {dtype} of shape {shape}{order}."
                )
            _check_claim(header, entry, path)
            if entry.compress_type != ZIP_STORED:
                return _unpacked(file, header, gain, callback, path)
            raw.seek(entry.header_offset + _LENGTHS)
            offset = entry.header_offset + _LOCAL + sum(struct.unpack("<HH", raw.read(4)))
            start = offset + file.tell()
            return ArrayPixels(np.memmap(path, np.uint8, "r", start, shape), gain=gain)


def _whole(path: Path) -> AbstractContextManager[None]:
    problem = f"Expected a whole .npz archive, but {path} is truncated or damaged"
    return demix_errors(problem, "fetch it again")


def _header(file: IO[bytes], path: Path, key: str) -> Header:
    header = read_header(file)
    if header.dtype.hasobject:
        raise DemixError(
            f"Expected numbers in {key!r} of {path}, but it holds pickled objects, which demix "
            "never opens."
        )
    return header


def _check_claim(header: Header, entry: ZipInfo, path: Path) -> None:
    """Refuse a header that claims more than the archive can hold, or than fits into memory."""
    if header.size > min(entry.file_size, DEFLATED * path.stat().st_size):
        raise EOFError(f"an array claims {header.size} bytes that are not there")
    if entry.compress_type != ZIP_STORED:
        check_memory(
            header.size, f"Reading {path}", "save it with numpy.savez, not savez_compressed"
        )


def _unpacked(file: IO[bytes], header: Header, gain: int, callback: Progress, path: Path) -> Pixels:
    total, *shape = header.shape
    if gain == 255 and len(shape) == 2:
        bits = np.empty((total, -(-shape[0] * shape[1] // 8)), dtype=np.uint8)
        for start, block in _blocks(file, header, callback, path):
            if block.max() > 1:
                raise DemixError(f"Expected images of zeros and ones in {path}, but one has more.")
            bits[start : start + len(block)] = np.packbits(block.reshape(len(block), -1), axis=1)
        return BitPixels(bits, *shape)
    images = np.empty(header.shape, dtype=np.uint8)
    for start, block in _blocks(file, header, callback, path):
        images[start : start + len(block)] = block
    return ArrayPixels(images, gain=gain)


def _blocks(
    file: IO[bytes], header: Header, callback: Progress, path: Path
) -> Iterator[tuple[int, np.ndarray]]:
    """Go through a compressed array, some images at a time; the end compares its checksum."""
    total, *shape = header.shape
    each = int(np.prod(shape))
    step = max(1, _BLOCK // each)
    for start in range(0, total, step):
        callback(start, total, f"images of {path.name}")
        number = min(step, total - start)
        block = np.frombuffer(file.read(number * each), dtype=np.uint8)
        if len(block) < number * each:
            raise EOFError(f"it ends after {start + len(block) // each} of {total} images")
        yield start, block.reshape(number, *shape)
    file.read(1)
    callback(total, total, f"images of {path.name}")
