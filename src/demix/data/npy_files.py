"""Arrays from numpy's own files, without pickle."""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from demix._support.errors import DemixError, reason, shortened
from demix._support.files import is_there, open_regular
from demix._support.memory import check_memory
from demix.data.formats import check_kind, choose_array

DEFLATED = 1100
"""No byte of a compressed file stands for more than so many."""

# Letters that exist: up to here, and without the halves of pairs.
_LETTERS, _HALVES = 0x10FFFF, (0xD800, 0xDFFF)
# A magic string and two bytes of version, then the length of the header.
_BEFORE = 8
_LONGEST = 2**16


class Header(NamedTuple):
    """What stands before the numbers of an array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def size(self) -> int:
        """How many bytes the numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def is_table(path: Path) -> bool:
    """Whether a path names a csv file; otherwise it must name an ``.npy`` file."""
    suffix = path.suffix.lower()
    there = is_there(path)
    if not there or suffix not in (".npy", ".csv", ".tsv"):
        found = "is neither" if there else "is no such file"
        raise DemixError(f"Expected an .npy or .csv file, but {path} {found}.")
    return suffix != ".npy"


def read_npy(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file."""
    check_kind(path, "a numpy array (.npy)")
    try:
        with open_regular(path) as file:
            read_header(file)
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        _check_letters(array)
    except Exception as error:  # numpy fails in many ways over a header that is none
        if "Python objects" in str(error):
            raise DemixError(
                f"Expected an .npy file of numbers, but {path} holds pickled objects, which demix "
                "never opens; save an array of numbers with numpy.save."
            ) from error
        raise DemixError(
            f"Expected a whole .npy file of numbers, but {path} cannot be read as one "
            f"({reason(error)}); save it again with numpy.save."
        ) from error
    return array


def read_npz(path: Path, key: str | None) -> np.ndarray:
    """Read one array of an ``.npz`` archive: the only one, or that named ``key``.

    What its header claims is compared with the archive before memory is taken for it.
    """
    check_kind(path, "a zip archive (.npz)")
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            if not names:
                raise DemixError(
                    f"Expected arrays in {path}, but it is a zip archive of something else."
                )
            arrays = [name.removesuffix(".npy") for name in names]
            name = names[arrays.index(choose_array(arrays, key, path))]
            check_packing(archive.getinfo(name))
            with archive.open(name) as file:
                size = read_header(file).size
            if size > min(archive.getinfo(name).file_size, DEFLATED * path.stat().st_size):
                raise ValueError(f"{shortened(name)} claims {size} bytes that are not there")
            check_memory(2 * size, f"Reading {shortened(name)} of {path}", "save it as .npy")
            with archive.open(name) as file:
                array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            _check_letters(array)
    except DemixError:
        raise
    except Exception as error:  # zip and numpy fail in many ways
        raise DemixError(
            f"Expected a whole .npz archive of numbers, but {path} cannot be read as one "
            f"({reason(error)}); save it again with numpy.savez."
        ) from error
    return array


def check_packing(member: zipfile.ZipInfo) -> None:
    """Raise ``ValueError`` over a way to compress of which no part can be read alone."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{shortened(member.filename)} is packed in a way that numpy never uses")


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an array; ``ValueError`` if it is none, or claims more than 64 kB.

    numpy reads as much as the header claims, gigabytes if need be, before it looks at it.
    """
    start = file.read(_BEFORE)
    first_version = start[6:7] == b"\x01"
    length = file.read(2 if first_version else 4)
    claimed = int.from_bytes(length, "little")
    if claimed > _LONGEST:
        raise ValueError(f"its header claims {claimed} bytes")
    raw = BytesIO(start + length + file.read(claimed))
    np.lib.format.read_magic(raw)
    read = np.lib.format.read_array_header_1_0
    header = Header(*(read if first_version else np.lib.format.read_array_header_2_0)(raw))
    if header.dtype.itemsize == 0:
        raise ValueError("its entries have no size, so that there may be any number of them")
    return header


def _check_letters(array: np.ndarray) -> None:
    """Refuse text with numbers in it that stand for no letter; Python stops over it."""
    if array.dtype.kind != "U" or array.size == 0 or array.dtype.itemsize == 0:
        return
    codes = np.ascontiguousarray(array).view(array.dtype.str[0] + "u4")
    low, high = _HALVES
    if bool(((codes > _LETTERS) | ((codes >= low) & (codes <= high))).any()):
        raise ValueError("its text has letters that do not exist")
