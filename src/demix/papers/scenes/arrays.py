"""The files of a rendered folder, and whether they are still as they were written."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import file_digest, open_own, open_regular, refuse_new
from demix._support.outputs import read_marker
from demix.papers.scenes.order import Order, shard_rows

META = "meta.json"
_MOST = 2**10  # bytes for each row that no file of latents has
_TRIED = 8  # rows that may be damaged before a file counts as somebody else's


def allocate(file: Path, shape: tuple[int, ...]) -> os.stat_result:
    """Make an ``.npy`` file of zeros, or set header and size of one right; it keeps its rows.

    What is returned tells it from others of its name.
    """
    header = _header(shape)
    refuse_new(file)
    with os.fdopen(open_own(file, os.O_CREAT), "r+b") as begun:
        begun.write(header)
        begun.truncate(len(header) + math.prod(shape))
        return os.fstat(begun.fileno())


def check_ours(file: Path, shape: tuple[int, ...], kind: str, row: Callable[[int], bytes]) -> None:
    """Refuse a file that holds other rows than ``row(k)``; our own may be damaged, or blank."""
    if not os.path.lexists(file):
        return
    header, size = _header(shape, kind), math.prod(shape[1:]) * np.dtype(kind).itemsize
    with os.fdopen(open_own(file, 0), "rb") as opened:
        start = opened.read(len(header))
        blank = header.startswith(start) or not any(start)
        filled = 0
        for k in range(shape[0]):
            found = opened.read(size)
            if found.count(0) < len(found):
                filled += 1
                # A kill in the middle of a write leaves the start of a row.
                if row(k).startswith(found.rstrip(b"\0")):
                    return
            if len(found) < size or filled == _TRIED:
                break
    if filled or not blank:
        raise _something_else(file)


def check_length(file: Path, shape: tuple[int, ...], kind: str) -> None:
    """Refuse a file that is longer than ours: what somebody has added to it would be cut off."""
    whole = len(_header(shape, kind)) + math.prod(shape) * np.dtype(kind).itemsize
    if file.is_file() and file.stat().st_size > whole:
        raise _something_else(file)


def _something_else(file: Path) -> DemixError:
    return DemixError(
        f"{file} holds something else (not what demix writes there); move it, or choose another "
        "folder."
    )


def is_allocated(file: Path, shape: tuple[int, ...]) -> bool:
    """Whether a file has the size and the header that :func:`allocate` gives it."""
    header = _header(shape)
    if not file.is_file() or file.stat().st_size != len(header) + math.prod(shape):
        return False
    with open_regular(file) as opened:
        return opened.read(len(header)) == header


def read(file: Path, shape: tuple[int, ...], first: int, last: int) -> bytes:
    """Return the bytes of rows ``first..last - 1`` of an allocated file; fewer if there are not."""
    row = math.prod(shape[1:])
    try:
        with open_regular(file) as opened:
            opened.seek(len(_header(shape)) + first * row)
            return opened.read((last - first) * row)
    except OSError:
        return b""


def fill(
    file: Path, shape: tuple[int, ...], first: int, rows: np.ndarray, made: os.stat_result
) -> None:
    """Write rows of bytes into the file that was allocated, and wait until they are on the disk."""
    # Not through a memory map: on a full disk, that ends the process without a word.
    with os.fdopen(open_own(file, 0), "r+b") as opened:
        header = _header(shape)
        # Another may have been put there meanwhile.
        same = os.path.samestat(os.fstat(opened.fileno()), made)
        if not same or opened.read(len(header)) != header:
            raise _something_else(file)
        opened.seek(first * rows[0].size, os.SEEK_CUR)
        opened.write(np.ascontiguousarray(rows).data)
        opened.flush()
        os.fsync(opened.fileno())


def raw_npy(array: np.ndarray) -> bytes:
    """Return the bytes of an array as an ``.npy`` file."""
    raw = io.BytesIO()
    np.save(raw, array)
    return raw.getvalue()


def _header(shape: tuple[int, ...], kind: str = "|u1") -> bytes:
    raw = io.BytesIO()
    about = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(raw, about)
    return raw.getvalue()


def checksum(*raw: bytes | memoryview) -> str:
    """Return the SHA-256 of some bytes, as much of it as tells damage."""
    digest = hashlib.sha256()
    for part in raw:
        digest.update(part)
    return digest.hexdigest()[:16]


@dataclass
class Sums:
    """Checksums of the files of latents, by name, and of the rendered shards, in their order."""

    latents: dict[str, str] = field(default_factory=dict)
    shards: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, about: Mapping[str, Any], order: Order) -> Sums:
        """Take what a folder of an order says of itself."""
        found = about["sha256"]
        sums = cls(dict(found["latents"]), list(found["shards"]))
        if not sums.latents.keys() <= {f"{name}.npy" for name in order.files}:
            raise ValueError("it holds checksums of other files")
        if (len(sums.shards) - 1) * shard_rows(order) >= order.n:
            raise ValueError("it holds checksums of more images")
        return sums

    def count(self, order: Order) -> int:
        """Return how many images are rendered."""
        return min(order.n, len(self.shards) * shard_rows(order))

    def hold(self, folder: Path, order: Order) -> bool:
        """Whether all that was made is as it was made."""
        images = [folder / f"{name}.npy" for name in order.files.values()]
        return (
            self.latents.keys() == {f"{name}.npy" for name in order.files}
            and all(is_allocated(file, order.shape) for file in images)
            # A stranger's may have any size, and would be read as a whole.
            and all((folder / x).is_file() for x in self.latents)
            and all((folder / x).stat().st_size < _MOST * (order.n + 1) for x in self.latents)
            # As `checksum` gives it, of a file of any size.
            and all(file_digest(folder / name)[:16] == made for name, made in self.latents.items())
            and next(self.damaged(folder, order), None) is None
        )

    def damaged(self, folder: Path, order: Order) -> Iterator[int]:
        """Go through the numbers of shards that are not as they were rendered."""
        files = [folder / f"{name}.npy" for name in order.files.values()]
        rows = shard_rows(order)
        for place, expected in enumerate(self.shards):
            last = min(order.n, (place + 1) * rows)
            raw = [read(file, order.shape, place * rows, last) for file in files]
            if checksum(*raw) != expected:
                yield place


def read_meta(folder: Path) -> dict[str, Any]:
    """Return what a folder says of itself, if that is as it was written."""
    try:
        about = dict(read_marker(folder / META))
        if about["seal"] != sealed(about)["seal"]:
            raise ValueError("its checksum is another")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DemixError(f"{folder / META} is damaged; render into a new folder.") from error
    return about


def sealed(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with a checksum of them."""
    facts = {name: value for name, value in about.items() if name != "seal"}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    return facts | {"seal": digest.hexdigest()}
