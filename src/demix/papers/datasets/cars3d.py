"""Cars3D, from the archive of its official meshes or a folder of them: MATLAB files."""

import math
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np

from demix._support.errors import DemixError, demix_errors, shortened
from demix._support.files import open_regular
from demix._support.memory import check_memory
from demix.papers.datasets.archives import open_tar
from demix.papers.datasets.factor_images import (
    ArrayPixels,
    FactorColumn,
    FactorImages,
    Progress,
    grid,
)

_AZIMUTHS, _ELEVATIONS = 24, 4
_CARS, _SIDE = 183, 128
_LARGEST = 2**25  # the official meshes have a few hundred kilobytes each


def open_cars3d(path: Path, *, callback: Progress) -> FactorImages:
    """Open ``nips2015-analogy-data.tar.gz``, or its folder ``cars`` of meshes (Reed et al. 2015).

    Each file is a car from 24 azimuths and 4 elevations, reduced to 64 x 64: 216 MB of 183 cars.
    """
    cars: dict[str, np.ndarray] = {}
    for name, content in _meshes(path):
        callback(len(cars), _CARS, f"cars of {path.name}")
        car, views = PurePosixPath(name).stem, _views(name, content, path)
        first = next(iter(cars.values()), views)
        if car in cars or len(cars) == _CARS or views.shape != first.shape:
            raise DemixError(
                f"Expected up to {_CARS} cars of one size in {path}, each once, but "
                f"{shortened(name)} is one more, or has another size; fetch it again."
            )
        if not cars:
            check_memory(2 * _CARS * views.nbytes, f"Reading {path}", "free some")
        cars[car] = views
    if not cars:
        raise DemixError(
            f"Expected car_..._mesh.mat files in {path}, but there are none; give "
            "nips2015-analogy-data.tar.gz or its folder data/cars."
        )
    callback(len(cars), len(cars), f"cars of {path.name}")
    names = tuple(sorted(cars))
    columns = (
        FactorColumn("elevation", "ordinal"),
        FactorColumn("azimuth", "periodic", period=_AZIMUTHS),
        FactorColumn("object_type", "categorical", levels=names),
    )
    factors = grid((len(names), _AZIMUTHS, _ELEVATIONS))[:, ::-1].copy()
    images = np.concatenate([cars[name] for name in names])
    return FactorImages("cars3d", ArrayPixels(images), columns, factors)


def is_cars3d(path: Path) -> bool:
    """Tell whether a folder or an archive may hold meshes of cars."""
    if path.is_dir():
        return any(path.glob("car_*_mesh.mat")) or any(path.glob("cars/car_*_mesh.mat"))
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def _meshes(path: Path) -> Iterator[tuple[str, bytes]]:
    """Go through the files of an archive or a folder; nothing is unpacked to the disk."""
    if path.is_dir():
        for file in sorted([*path.glob("*_mesh.mat"), *path.glob("cars/*_mesh.mat")]):
            with open_regular(file) as mesh:
                yield file.name, mesh.read(_LARGEST)  # more is cut off, and so refused
        return
    problem = f"Expected a whole tar archive, but {path} is truncated or damaged"
    with demix_errors(problem, "fetch it again"), open_tar(path) as archive:
        for member in archive:
            # A link has no size of its own.
            if not (member.isreg() and PurePosixPath(member.name).match("car_*_mesh.mat")):
                continue
            if member.size > _LARGEST:
                raise EOFError(f"{shortened(member.name)} claims {member.size} bytes")
            opened = archive.extractfile(member)
            assert opened is not None
            yield member.name, opened.read()


def _views(name: str, content: bytes, path: Path) -> np.ndarray:
    """Return the images ``(96, 64, 64, 3)`` of one car, elevations fastest."""
    problem = f"Expected a whole MATLAB file with the array 'im', but {name} in {path} is truncated"
    with demix_errors(f"{problem} or damaged", "fetch it again"):
        views = read_mat(content, "im")
        if views is None:
            raise ValueError("there is none")
    fits = all(2 <= side <= _SIDE for side in views.shape[:2])
    if views.dtype != np.uint8 or views.shape[2:] != (3, _AZIMUTHS, _ELEVATIONS) or not fits:
        raise DemixError(
            f"Expected uint8 of shape ({_SIDE}, {_SIDE}, 3, {_AZIMUTHS}, {_ELEVATIONS}) in 'im' of "
            f"{name} in {path}, but found {views.dtype} of shape {views.shape}."
        )
    images = views.transpose(3, 4, 0, 1, 2).reshape(-1, *views.shape[:3])
    number, height, width, channels = images.shape
    halved = images[:, : height // 2 * 2, : width // 2 * 2].reshape(
        number, height // 2, 2, width // 2, 2, channels
    )
    # Four bytes and a half add up to less than a short holds.
    return ((halved.sum(axis=(2, 4), dtype=np.uint16) + 2) // 4).astype(np.uint8)


# In plain Python: over some damaged MATLAB files SciPy ends the process, or never ends.
_COMPRESSED, _MATRIX, _NAME, _DIMENSIONS = 15, 14, 1, 5
# Types of stored numbers, and what they are called in NumPy.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_TYPES |= {12: "i8", 13: "u8"}
# Classes of arrays: numbers may be stored in a smaller type than that of the array.
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4"}
_COMPLEX = 0x0800
# No file that is meant here unpacks to more, or has more arrays.
_MOST, _ARRAYS = 2**25, 100
_HEADER, _PARTS = 128, 4


def read_mat(raw: bytes, name: str) -> np.ndarray | None:
    """Return the array of a name in a MATLAB file of version 5, None if there is none.

    A file is a list of elements, each a type, a length and so many bytes, filled up to eight; an
    array is one of flags, sizes, name and numbers. See The MathWorks (2024), *MAT-File Format*.
    """
    if len(raw) < _HEADER or raw[126:128] not in (b"IM", b"MI"):
        raise ValueError("it is no MATLAB file of version 5")
    order = "<" if raw[126:128] == b"IM" else ">"
    left = _MOST
    for kind, content in islice(_elements(raw[_HEADER:], order), _ARRAYS):
        if kind == _COMPRESSED:
            packed = zlib.decompressobj()
            unpacked = packed.decompress(content, left + 1)
            left -= len(unpacked)
            if not packed.eof or left < 0:
                raise ValueError("an array is cut off, or they are too large")
            kind, content = next(_elements(unpacked, order), (0, b""))
        if kind == _MATRIX:
            parts = list(islice(_elements(content, order), _PARTS + 1))
            if len(parts) >= 3 and parts[2] == (_NAME, name.encode()):
                return _array(parts, order)
    return None


def _elements(raw: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Go through elements: the type of each, and what it holds."""
    start = 0
    while start + 8 <= len(raw):
        kind, length = struct.unpack(f"{order}II", raw[start : start + 8])
        if kind >> 16:  # a small one: its length beside the type, its bytes in place of the length
            kind, length = kind & 0xFFFF, kind >> 16
            if length > 4:
                raise ValueError(f"a small element claims {length} bytes")
            yield kind, raw[start + 4 : start + 4 + length]
            start += 8
            continue
        if length > len(raw) - start - 8:
            raise ValueError(f"an element claims {length} bytes that are not there")
        yield kind, raw[start + 8 : start + 8 + length]
        # What is compressed is not filled up.
        start += 8 + (length if kind == _COMPRESSED else -(-length // 8) * 8)


def _array(parts: list[tuple[int, bytes]], order: str) -> np.ndarray:
    """Return an array from its flags, sizes, name and numbers."""
    if len(parts) != _PARTS or len(parts[0][1]) != 8 or parts[1][0] != _DIMENSIONS:
        raise ValueError("an array is no matrix of real numbers")
    (flags,) = struct.unpack(f"{order}I", parts[0][1][:4])
    kind, (stored, content) = flags & 0xFF, parts[3]
    if kind not in _CLASSES or stored not in _TYPES or flags & _COMPLEX:
        raise ValueError("an array holds no real numbers")
    sizes = np.frombuffer(parts[1][1], f"{order}i4").tolist()
    numbers = np.frombuffer(content, f"{order}{_TYPES[stored]}")
    if len(sizes) < 2 or min(sizes) < 0 or math.prod(sizes) != len(numbers):
        raise ValueError(f"an array of {len(numbers)} numbers has the shape {sizes}")
    return numbers.astype(_CLASSES[kind]).reshape(sizes, order="F")
