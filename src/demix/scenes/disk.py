"""Room on the disk: looked at before rendering, and told of when it runs out."""

from __future__ import annotations

import shutil
from pathlib import Path

from demix.errors import DemixError
from demix.memory import in_words

# For latents, the file about them and what the file system keeps for itself.
_BESIDE = 4 << 20


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what will not fit on the disk of a folder, which need not exist yet."""
    free = _free(folder)
    if needed + _BESIDE > free:
        raise DemixError(
            f"Rendering needs {in_words(needed + _BESIDE)} on the disk of {folder}, but "
            f"{in_words(free)} are free; choose another folder, fewer images or a smaller size."
        )


def full_disk(folder: Path, needed: int, done: int) -> DemixError:
    """Return the error of a disk that filled up while rendering."""
    return DemixError(
        f"The disk of {folder} is full: the remaining images need {in_words(needed)}, but "
        f"{in_words(_free(folder))} are free; the {done} images rendered so far can be used, and "
        "the same command goes on after them once there is room."
    )


def _free(folder: Path) -> int:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
