"""Processes that render shards of a folder, and the room they need."""

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix._support.memory import check_memory, in_words
from demix._support.provenance import cores
from demix.papers.scenes.arrays import checksum, fill
from demix.papers.scenes.order import Order, shard_rows
from demix.papers.scenes.registry import scene_named
from demix.papers.workers.executors import Workers


def rendered(
    folder: Path,
    order: Order,
    made: Sequence[os.stat_result],
    todo: Sequence[range],
    jobs: int | None,
) -> Generator[str, None, None]:
    """Render shards into files ``made`` for them; yield, in their order, the checksum of each."""
    # Not by threads, which fill no cores.
    # Blender fills the cores by itself.
    jobs = min(1 if order.engine == "blender" else jobs or cores(), len(todo))
    render = partial(_render, folder, order, made)
    if jobs <= 1:
        yield from map(render, todo)
        return
    # Not forked from this one, which would copy locks of threads, those of torch for example.
    with Workers(jobs, preload=[__name__]) as workers:
        yield from workers.map(render, todo)


def _render(folder: Path, order: Order, made: Sequence[os.stat_result], rows: range) -> str:
    written = []
    for (latents, images), empty in zip(order.files.items(), made, strict=True):
        z = np.load(folder / f"{latents}.npy", mmap_mode="r")[rows.start : rows.stop]
        drawn = np.stack([image_of(order, row) for row in z])
        fill(folder / f"{images}.npy", order.shape, rows.start, drawn, empty)
        written.append(np.ascontiguousarray(drawn).data)
    return checksum(*written)


def image_of(order: Order, latents: np.ndarray) -> np.ndarray:
    """Return the image of latents ``(d,)`` as an order asks for it."""
    return _engine(order.engine, order.scene, order.size)(latents)


@cache
def _engine(engine: str, scene: str, size: int) -> Callable[[np.ndarray], np.ndarray]:
    if engine == "blender":
        from demix.papers.scenes.blender import Blender

        return Blender(size).image
    chosen = scene_named(scene)
    return lambda latents: chosen.image(latents, size)


_BESIDE = 4 << 20  # for latents, the file about them and what the file system keeps for itself
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
