"""Arrays of an ``.npz`` archive: mapped where they are stored as they are, else read in blocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from demix._support.errors import DemixError, demix_errors
from demix._support.memory import check_memory
from demix.data.formats import check_kind, choose_array
from demix.data.npy_files import DEFLATED, Header, read_header
from demix.papers.datasets.factor_images import ArrayPixels, BitPixels, Pixels, Progress

# A file in an archive: 26 bytes, then the lengths of its name and of what comes after that.
_LENGTHS, _LOCAL = 26, 30
_BLOCK = 64 * 2**20


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an archive."""
    check_kind(path, "a zip archive (.npz)")
    with _whole(path), ZipFile(path) as archive:
        names = archive.namelist()
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def read_array(path: Path, key: str) -> np.ndarray:
    """Read an array of numbers into memory."""
    name = choose_array(array_names(path), key, path)
    with _whole(path), ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        # Whole, so that the archive's checksum is compared.
        _check_claim(_header(file, path, key), archive.getinfo(f"{name}.npy"), path)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def image_array(path: Path, key: str, *, callback: Progress, gain: int = 1) -> Pixels:
    """Return images ``(N, H, W)`` or ``(N, H, W, C)`` of bytes, multiplied by ``gain``.

    An array that is not compressed stays in the file. A compressed one is read once; black and
    white images (``gain`` 255) take an eighth of their size.
    """
    name = choose_array(array_names(path), key, path)
    with _whole(path), path.open("rb") as raw, ZipFile(raw) as archive:
        entry = archive.getinfo(f"{name}.npy")
        with archive.open(entry) as file:
            header = _header(file, path, key)
            _check_images(header, path, key)
            _check_claim(header, entry, path)
            if entry.compress_type != ZIP_STORED:
                return _unpacked(file, header, gain, callback, path)
            raw.seek(entry.header_offset + _LENGTHS)
            offset = entry.header_offset + _LOCAL + sum(struct.unpack("<HH", raw.read(4)))
            start = offset + file.tell()
            return ArrayPixels(np.memmap(path, np.uint8, "r", start, header.shape), gain=gain)


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


def _check_images(header: Header, path: Path, key: str) -> None:
    shape, fortran, dtype = header
    if dtype != np.uint8 or len(shape) not in (3, 4) or fortran or 0 in shape:
        order = " in column-major order" if fortran else ""
        raise DemixError(
            f"Expected images (N, H, W) or (N, H, W, C) of uint8 in {key!r} of {path}, but it "
            f"holds {dtype} of shape {shape}{order}."
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
