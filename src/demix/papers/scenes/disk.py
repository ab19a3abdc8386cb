"""Room on the disk and in memory: looked at before rendering, and told of when it runs out."""

from __future__ import annotations

import shutil
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.memory import check_memory, in_words
from demix.papers.scenes.order import Order
from demix.papers.scenes.workers import shard_rows

# For latents, the file about them and what the file system keeps for itself.
_BESIDE = 4 << 20
# Bytes as measured: of a process, of each pixel of an image on its way, of Embree's address space.
_PROCESS, _PIXEL, _EMBREE = 80 << 20, 1600, 400 << 20


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what will not fit on the disk of a folder, which need not exist yet."""
    free = _free(folder)
    if needed + _BESIDE > free:
        raise DemixError(
            f"Rendering needs {in_words(needed + _BESIDE)} on the disk of {folder}, but "
            f"{in_words(free)} are free; choose another folder, fewer images or a smaller size."
        )


def check_processes(order: Order, latents: int, jobs: int) -> None:
    """Refuse to begin what so many processes cannot hold in memory."""
    pixels = order.size**2 * (_PIXEL + 3 * shard_rows(order))
    libraries = 0 if order.scene == "sprites" else _EMBREE
    check_memory(
        jobs * (_PROCESS + pixels) + libraries + 4 * 4 * order.n * latents,
        f"Rendering with {jobs} processes" if jobs > 1 else "Rendering",
        "take fewer jobs, fewer images or a smaller size",
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
