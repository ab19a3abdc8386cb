"""Rows of zarr arrays of any origin."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, demix_errors, need, reason, shortened
from demix._support.files import inside, kind_of, open_regular, stamp_of
from demix._support.memory import check_memory
from demix.data.formats import choose_array
from demix.data.rows import StoredRows

# Codecs that turn bytes into numbers and do nothing else. Others unpickle what a chunk holds, or
# are plugins that zarr imports because a file names them; zfpy crashes over a damaged chunk.
_NUMCODECS = (
    *("adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta"),
    *("fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits"),
    *("pcodec", "quantize", "shuffle", "zlib", "zstd"),
)
_CODECS = {
    2: _NUMCODECS,
    3: (
        *("blosc", "bytes", "crc32c", "endian", "gzip", "sharding_indexed", "transpose", "zstd"),
        *(f"numcodecs.{name}" for name in _NUMCODECS),
    ),
}
# Where a codec says what it decodes to; text of any length would be a way to fill the memory.
_TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
# Files of metadata with the version of each, and their most bytes; zarr would read any size.
_FILES, _MOST_TEXT = (("zarr.json", 3), (".zarray", 2), (".zgroup", 2)), 2**24
# Attributes of numbers that stand for others, as xarray writes them; NaN may stand for a gap.
_PACKED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
_PLAIN = ("None", "nan", "NaN", "AAAAAAAA+H8=")
_INDEX = 16  # bytes of a shard for each chunk, to say where it lies


def open_zarr(path: Path, key: str | None) -> ZarrRows:
    """Open one array of a zarr store; metadata first, as zarr loads any codec that they name."""
    zarr = need("zarr", "Reading a .zarr store", "files")
    with demix_errors(f"Expected a zarr store, but {path} cannot be read as one", "write it again"):
        folder, metadata = path, _metadata(path)
        if not metadata:
            raise ValueError("it has no zarr.json, .zarray or .zgroup")
        if "shape" not in metadata:
            children = (child for child in path.iterdir() if child.is_dir())
            names = sorted(child.name for child in children if "shape" in _metadata(child))
            folder = path / choose_array(names, key, path)
            metadata = _metadata(folder)
        elif key is not None:
            raise DemixError(f"A key chooses from a zarr group, but {path} holds a single array.")
        _check_codecs(metadata, str(folder))
        _metadata(folder, ((".zattrs", 2),))
        array = zarr.open_array(folder, mode="r", zarr_format=metadata["zarr_format"])
        return ZarrRows(array, str(path))


class ZarrRows(StoredRows):
    """Rows of a zarr array, which is refused if it is unsafe to decode or a local chunk is missing.

    Each access reads only the chunks that it needs.
    """

    def __init__(self, array: Any, source: str) -> None:
        self._array, self.source = array, source
        self.shape, self.dtype = array.shape, array.dtype
        root = getattr(array.store, "root", None)
        self._folder = root / array.path if isinstance(root, Path) else None
        _check_codecs(array.metadata.to_dict(), source)
        packed = [x for x in _PACKED if str(array.attrs.get(x)) not in _PLAIN]
        if packed:
            raise DemixError(
                f"Expected plain numbers, but those of {source} are packed (its attributes hold "
                f"{packed[0]}); decode them, e.g. with xarray, and write the result."
            )
        if 0 in array.chunks:
            raise DemixError(
                f"Expected chunks that hold something, but those of {source} have shape "
                f"{array.chunks}; write the store again."
            )
        size = math.prod(array.chunks) * array.dtype.itemsize
        if array.shards is not None:
            size += _INDEX * math.prod(array.shards) // math.prod(array.chunks)
        advice = "write the store again in smaller chunks"
        check_memory(size, f"Reading a chunk of {source}", advice)
        if self._folder is not None:
            _check_chunks(array, self._folder, source)
        self.stamp = self.now()

    def now(self) -> object:
        """Return the stamp of all files, if they are local files."""
        files = () if self._folder is None else inside(self._folder, OSError)
        return stamp_of(file for file in files if not file.is_dir())

    def _read(self, index: slice | np.ndarray) -> np.ndarray:
        damaged = f"Expected chunks without gaps in {self.source}, but one of them is damaged"
        with demix_errors(damaged, "write the store again"):
            rows = np.asarray(self._array.oindex[index])
            if (gap := self._array.fill_value) and (rows == gap).any():
                raise ValueError(f"numbers are its fill value {gap}; give another if it is no gap")
            return rows


def _metadata(folder: Path, files: Iterable[tuple[str, int]] = _FILES) -> dict[str, Any]:
    """Return the metadata in a folder; none if it is no part of a zarr store."""
    for name, version in files:
        if (folder / name).exists():
            with open_regular(folder / name) as file:
                if os.fstat(file.fileno()).st_size > _MOST_TEXT:
                    raise ValueError(f"{name} has more than {_MOST_TEXT} bytes")
                return {**json.load(file), "zarr_format": version}
    return {}


def _check_codecs(metadata: dict[str, Any], source: str) -> None:
    version = metadata["zarr_format"]
    for name, settings in _codecs(metadata, version):
        if name not in _CODECS[version]:
            raise DemixError(
                f"Expected chunks that are plain or compressed numbers, but those of {source} need "
                f"the codec {shortened(str(name))!r}, which demix never runs; write the store "
                "again without it."
            )
        types = [settings[key] for key in _TYPES if settings.get(key) is not None]
        if any(np.dtype(kind).kind not in "biuf" for kind in types):
            raise DemixError(
                f"Expected real numbers, but the codec {name!r} of {source} gives something else; "
                "write the store again without it."
            )


def _codecs(metadata: dict[str, Any], version: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield names and settings of all codecs, including those inside shards."""
    if version == 2:
        for codec in (metadata.get("compressor"), *(metadata.get("filters") or ())):
            if codec is not None:
                yield codec["id"], codec
        return
    for codec in metadata["codecs"]:
        settings = codec.get("configuration") or {}
        yield codec["name"], settings
        # What packs a whole shard, or its index, could make millions of chunks of a few bytes.
        if codec["name"] == "sharding_indexed":
            index = list(_codecs({"codecs": settings.get("index_codecs", ())}, version))
            yield from index
            packed = {name for name, _ in index} - {"bytes", "endian", "crc32c"}
            if packed or codec != metadata["codecs"][-1]:
                raise DemixError(
                    "Expected shards of compressed chunks, but these are compressed as a whole; "
                    "write the store again."
                )
            yield from _codecs(settings, version)


def _check_chunks(array: Any, folder: Path, source: str) -> None:
    """Raise if files of an array are missing, which zarr reads as the fill value."""
    size = array.shards or array.chunks
    grid = [-(-length // part) for length, part in zip(array.shape, size, strict=True)]

    def is_chunk(name: str) -> bool:
        place = tuple(map(int, re.findall(r"\d+", name)))
        inside = len(place) == len(grid) and all(map(int.__lt__, place, grid))
        return inside and array.metadata.encode_chunk_key(place) == name

    try:
        there = sum(map(is_chunk, _files(folder)))
    except OSError as error:
        raise DemixError(
            f"Expected readable chunks in {source}, but {error.filename} is not: {reason(error)}."
        ) from error
    total = math.prod(grid)
    missing = total - there
    fill = 0 if array.fill_value is None else array.fill_value
    # A few that read as NaN, the one number that is not itself, are found when numbers are checked.
    if missing > there or (missing and fill == fill):
        raise DemixError(
            f"Expected all {total} chunks of {source}, but it lacks {missing}, which "
            f"would be read as {fill}; write the store again, with write_empty_chunks=True if "
            "that is what they hold."
        )


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of all files in a folder and its subfolders, as zarr writes them."""
    for entry in inside(folder):
        # Files of the kernel, on which a reader may wait for ever, call themselves empty.
        if entry.is_file() and entry.stat().st_size:
            yield entry.path[len(str(folder)) + 1 :].replace(os.sep, "/")
        elif not entry.is_dir(follow_symlinks=False):
            kind = kind_of(entry.stat(follow_symlinks=False).st_mode) or "empty"
            raise DemixError(
                f"Expected nothing but files in a zarr array, but {entry.path} is {kind}; write "
                "the store again."
            )
