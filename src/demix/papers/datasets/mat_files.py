"""Arrays of numbers from MATLAB files, read in plain Python.

The reader of SciPy ends the process, or never ends, over some damaged files.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np

_COMPRESSED, _MATRIX, _NAME, _DIMENSIONS = 15, 14, 1, 5
# Types of stored numbers, and what they are called in NumPy.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
# Classes of arrays: numbers may be stored in a smaller type than that of the array.
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4"}
_COMPLEX = 0x0800
# No array that is meant here is larger.
_MOST = 2**25
_HEADER = 128


def read_mat(raw: bytes, name: str) -> np.ndarray | None:
    """Return the array of a name in a MATLAB file of version 5, None if there is none.

    A file is a header and a list of elements, each a type, a length and so many bytes, filled up to
    eight; an array is an element of elements: flags, sizes, name and numbers, in column-major
    order. Anything else raises ``ValueError``. See The MathWorks (2024), *MAT-File Format*.
    """
    if len(raw) < _HEADER or raw[126:128] not in (b"IM", b"MI"):
        raise ValueError("it is no MATLAB file of version 5")
    order = "<" if raw[126:128] == b"IM" else ">"
    for kind, content in _elements(raw[_HEADER:], order):
        if kind == _COMPRESSED:
            kind, content = next(_elements(_unpacked(content), order), (0, b""))
        if kind == _MATRIX:
            parts = list(_elements(content, order))
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


def _unpacked(content: bytes) -> bytes:
    packed = zlib.decompressobj()
    raw = packed.decompress(content, _MOST)
    if not packed.eof:
        raise ValueError("an array is cut off or too large")
    return raw


def _array(parts: list[tuple[int, bytes]], order: str) -> np.ndarray:
    """Return an array from its flags, sizes, name and numbers."""
    if len(parts) != 4 or len(parts[0][1]) != 8 or parts[1][0] != _DIMENSIONS:
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
