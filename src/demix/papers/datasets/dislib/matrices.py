"""Binary matrix files, in which NORB is distributed."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from zlib import error as ZlibError

import numpy as np

from demix._support.errors import DemixError, reason
from demix._support.memory import check_memory
from demix.data.npy_files import DEFLATED

_TYPES = {
    0x1E3D4C51: "<f4",
    0x1E3D4C53: "<f8",
    0x1E3D4C54: "<i4",
    0x1E3D4C55: "u1",
    0x1E3D4C56: "<i2",
}
_MOST_DIMENSIONS = 8
# Among them what a header gives rise to that promises more than any memory holds.
_DAMAGE = (OSError, EOFError, struct.error, ZlibError, OverflowError, MemoryError)


def read_matrix(path: Path) -> np.ndarray:
    """Return the array of a binary matrix file: mapped, or read once if it is compressed (.gz).

    Four bytes say the type of the numbers, four how many dimensions there are, then comes the size
    of each (at least three are written), then the numbers; all little-endian.

    References
    ----------
    Y. LeCun, F. J. Huang, L. Bottou (2004). *Learning Methods for Generic Object Recognition with
    Invariance to Pose and Lighting.* CVPR.
    """
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            kind, dimensions = struct.unpack("<ii", file.read(8))
            if kind not in _TYPES or not 1 <= dimensions <= _MOST_DIMENSIONS:
                raise DemixError(
                    f"Expected a binary matrix file, as NORB has them, but {path} begins otherwise."
                )
            written = max(3, dimensions)
            sizes = struct.unpack(f"<{written}i", file.read(4 * written))[:dimensions]
            if min(sizes) < 1:
                raise DemixError(f"Expected a filled matrix, but {path} has the shape {sizes}.")
            if packed:
                dtype = np.dtype(_TYPES[kind])
                needed = math.prod(sizes) * dtype.itemsize
                if needed > DEFLATED * path.stat().st_size:
                    raise EOFError(f"it claims {needed} bytes that are not there")
                check_memory(2 * needed, f"Reading {path}", "unpack it, and it can stay on disk")
                numbers = np.frombuffer(file.read(needed), dtype=np.uint8)
                if len(numbers) < needed:
                    raise EOFError(f"it holds {len(numbers)} of {needed} bytes")
                file.read(1)  # the end, where the checksum is compared
                return numbers.view(dtype).reshape(sizes)
        return np.memmap(path, _TYPES[kind], "r", 8 + 4 * written, shape=sizes)
    except (*_DAMAGE, ValueError) as error:
        if isinstance(error, DemixError):
            raise
        raise DemixError(
            f"Expected a whole matrix file, but {path} is truncated or damaged ({reason(error)}); "
            "fetch it again."
        ) from error
