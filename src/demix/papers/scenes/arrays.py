"""Files of arrays that are whole before they are filled."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path

import numpy as np

from demix._support.files import open_own, open_regular
from demix._support.outputs import refuse_other


def allocate(file: Path, shape: tuple[int, ...]) -> None:
    """Make an ``.npy`` file of zeros; it takes no room before it is filled.

    One that is there keeps its rows: its header and its size are set right if they are not.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from demix.papers.scenes.arrays import allocate, fill
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npy"
    ...     allocate(file, (3, 2))
    ...     fill(file, 1, np.array([[7, 8]], dtype=np.uint8))
    ...     np.load(file).tolist()
    [[0, 0], [7, 8], [0, 0]]
    """
    header = _header(shape)
    # What else it holds stays, as far as it goes.
    with os.fdopen(open_own(file, os.O_CREAT), "r+b") as begun:
        check_ours(file, len(header) + math.prod(shape))
        begun.write(header)
        begun.truncate(len(header) + math.prod(shape))


def check_ours(file: Path, size: int) -> None:
    """Refuse a file that neither begins as an array does, nor has the size of the one to write."""
    if file.is_file() and file.stat().st_size not in (0, size):
        refuse_other(file, b"\x93NUMPY")


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


def fill(file: Path, first: int, rows: np.ndarray) -> None:
    """Write rows of bytes into an allocated file, and wait until they are on the disk.

    Not through a memory map: on a full disk, that ends the process without a word.
    """
    with os.fdopen(open_own(file, 0), "r+b") as opened:
        np.lib.format.read_magic(opened)
        np.lib.format.read_array_header_1_0(opened)
        opened.seek(first * rows[0].size, os.SEEK_CUR)
        opened.write(np.ascontiguousarray(rows).data)
        opened.flush()
        os.fsync(opened.fileno())


def raw_npy(array: np.ndarray) -> bytes:
    """Return the bytes of an array as an ``.npy`` file."""
    raw = io.BytesIO()
    np.save(raw, array)
    return raw.getvalue()


def _header(shape: tuple[int, ...]) -> bytes:
    raw = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(raw, about)
    return raw.getvalue()
