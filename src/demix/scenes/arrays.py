"""Files of arrays that are whole before they are filled."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path

import numpy as np

from demix.files import write_atomic


def allocate(file: Path, shape: tuple[int, ...]) -> None:
    """Make an ``.npy`` file of zeros, unless it is there; it takes no room before it is filled.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from demix.scenes.arrays import allocate, fill
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npy"
    ...     allocate(file, (3, 2))
    ...     fill(file, 1, np.array([[7, 8]], dtype=np.uint8))
    ...     np.load(file).tolist()
    [[0, 0], [7, 8], [0, 0]]
    """
    if is_allocated(file, shape):
        return
    header = _header(shape)
    with file.open("wb") as begun:
        begun.write(header)
        begun.truncate(len(header) + math.prod(shape))


def is_allocated(file: Path, shape: tuple[int, ...]) -> bool:
    """Whether a file is as large as :func:`allocate` makes it."""
    return file.is_file() and file.stat().st_size == len(_header(shape)) + math.prod(shape)


def fill(file: Path, first: int, rows: np.ndarray) -> None:
    """Write rows of bytes into an allocated file, and wait until they are on the disk.

    Not through a memory map: on a full disk, that ends the process without a word.
    """
    with file.open("r+b") as opened:
        np.lib.format.read_magic(opened)
        np.lib.format.read_array_header_1_0(opened)
        opened.seek(first * rows[0].size, os.SEEK_CUR)
        opened.write(np.ascontiguousarray(rows).data)
        opened.flush()
        os.fsync(opened.fileno())


def save(file: Path, array: np.ndarray) -> None:
    """Write an array as an ``.npy`` file, whole or not at all."""
    raw = io.BytesIO()
    np.save(raw, array)
    write_atomic(file, raw.getvalue())


def _header(shape: tuple[int, ...]) -> bytes:
    raw = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(raw, about)
    return raw.getvalue()
