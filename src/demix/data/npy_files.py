"""Arrays from numpy's own files, without pickle."""

import math
import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from demix._support.errors import DemixError, demix_errors, reason, shortened
from demix._support.files import open_regular
from demix._support.memory import check_memory
from demix.data.formats import check_kind, choose_array

DEFLATED = 1100
"""One byte of a compressed file expands to at most so many."""

_LONGEST, _BEFORE = 2**16, 8  # bytes of a header, and of magic string and version before it


class Header(NamedTuple):
    """The header of an array in a file."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def size(self) -> int:
        """How many bytes the numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file."""
    check_kind(path, "a numpy array (.npy)")
    problem = f"Expected a whole .npy file of numbers, but {path} cannot be read as one"
    with demix_errors(problem, "save it again with numpy.save"):
        with open_regular(path) as file:
            header = read_header(file)
            if header.dtype.hasobject:
                raise DemixError(
                    f"Expected an .npy file of numbers, but {path} holds pickled objects, which "
                    "demix never opens; save an array of numbers with numpy.save."
                )
            if header.dtype.kind == "U":  # all of it is looked at
                check_memory(header.size, f"Reading {path}", "take fewer rows")
            after = os.fstat(file.fileno()).st_size - file.tell() - header.size
        if after > 0:
            raise ValueError(f"{after} bytes follow its numbers")
        return _checked_text(np.load(path, mmap_mode="r", allow_pickle=False))


def read_whole(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file, if there is memory for what is made of all its entries."""
    array = read_npy(path)
    check_memory(40 * array.size, f"Reading {path}", "give what belongs to fewer rows")
    return array


def read_npz(path: Path, key: str | None) -> np.ndarray:
    """Read one array of an ``.npz`` archive, if it is as large as its header claims."""
    check_kind(path, "a zip archive (.npz)")
    problem = f"Expected a whole .npz archive of numbers, but {path} cannot be read as one"
    advice = "save it again with numpy.savez"
    with demix_errors(problem, advice), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            raise DemixError(f"Expected arrays in {path}, but it is a zip file of something else.")
        arrays = [name.removesuffix(".npy") for name in names]
        if len(set(arrays)) < len(arrays):
            raise ValueError("two of its arrays have one name")
        name = names[arrays.index(choose_array(arrays, key, path))]
        with open_member(archive, name) as file:
            size = read_header(file).size
        if size > min(archive.getinfo(name).file_size, DEFLATED * path.stat().st_size):
            raise ValueError(f"{shortened(name)} claims {size} bytes that are not there")
        check_memory(2 * size, f"Reading {shortened(name)} of {path}", "save it as .npy")
        with archive.open(name) as file:
            return _checked_text(np.lib.format.read_array(file, allow_pickle=False))


def open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Open a file of an archive; ``ValueError`` if it inflates before a part can be read."""
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{shortened(name)} is packed in another way than stored or deflated")
    return archive.open(name)


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an array; ``ValueError`` if it is none, or claims more than 64 kB."""
    start = file.read(_BEFORE)  # numpy would read all that a header claims
    first_version = start[6:7] == b"\x01"
    length = file.read(2 if first_version else 4)
    claimed = int.from_bytes(length, "little")
    if claimed > _LONGEST:
        raise ValueError(f"its header claims {claimed} bytes")
    raw = BytesIO(start + length + file.read(claimed))
    np.lib.format.read_magic(raw)
    read = "read_array_header_1_0" if first_version else "read_array_header_2_0"
    try:
        header = Header(*getattr(np.lib.format, read)(raw))
    except Exception as error:  # numpy parses it as Python, which fails in many ways
        raise ValueError(f"its header is damaged ({reason(error)})") from error
    if min(header.shape, default=0) < 0:
        raise ValueError(f"its header claims the shape {shortened(str(header.shape))}")
    if header.dtype.itemsize == 0:
        raise ValueError("its entries have no size, so that there may be any number of them")
    return header


def _checked_text(array: np.ndarray) -> np.ndarray:
    """Return an array; ``ValueError`` if it is text with codes of no letter, which crash Python."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).view(array.dtype.str[0] + "u4")
        # Up to the last code point, and without the halves of surrogate pairs.
        if bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any()):
            raise ValueError("its text has letters that do not exist")
    return array
