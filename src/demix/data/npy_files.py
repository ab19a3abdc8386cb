"""Arrays from numpy's own files, without pickle."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from demix.data.formats import check_kind, choose_array, reason
from demix.errors import DemixError


def is_table(path: Path) -> bool:
    """Whether a path names a csv file; otherwise it must name an ``.npy`` file."""
    suffix = path.suffix.lower()
    if not path.is_file() or suffix not in (".npy", ".csv", ".tsv"):
        found = "is neither" if path.is_file() else "is no such file"
        raise DemixError(f"Expected an .npy or .csv file, but {path} {found}.")
    return suffix != ".npy"


def read_npy(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file."""
    check_kind(path, "a numpy array (.npy)")
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
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
    """Read one array of an ``.npz`` archive: the only one, or that named ``key``."""
    check_kind(path, "a zip archive (.npz)")
    try:
        # numpy would leave a file open that turns out to be damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            array = archive[choose_array(archive.files, key, path)]
    except DemixError:
        raise
    except (OSError, ValueError, EOFError, BadZipFile, ZlibError) as error:
        raise DemixError(
            f"Expected a whole .npz archive of numbers, but {path} cannot be read as one "
            f"({reason(error)}); save it again with numpy.savez."
        ) from error
    if not isinstance(array, np.ndarray):
        raise DemixError(f"Expected arrays in {path}, but it is a zip archive of something else.")
    return array
