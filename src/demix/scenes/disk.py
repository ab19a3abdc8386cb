"""Room on the disk: looked at before rendering, and told of when it runs out."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from demix.errors import DemixError

# For latents, the file about them and what the file system keeps for itself.
_BESIDE = 4 << 20


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what will not fit on the disk of a folder, which need not exist yet."""
    free = _free(folder)
    if needed + _BESIDE > free:
        raise DemixError(
            f"Rendering needs {told(needed + _BESIDE)} on the disk of {folder}, but {told(free)} "
            "are free; choose another folder, fewer images or a smaller size."
        )


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def full_disk(folder: Path, needed: int, done: int) -> DemixError:
    """Return the error of a disk that filled up while rendering."""
    return DemixError(
        f"The disk of {folder} is full: the remaining images need {told(needed)}, but "
        f"{told(_free(folder))} are free; the {done} images rendered so far can be used, and the "
        "same command goes on after them once there is room."
    )


def told(size: int) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> from demix.scenes.disk import told
    >>> told(3_072_000_000), told(2_500)
    ('3.1 GB', '2.5 kB')
    """
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def _free(folder: Path) -> int:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
