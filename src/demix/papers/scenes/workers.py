"""Processes that render shards of a folder."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix._support.workers.environment import process_environment
from demix.papers.scenes.arrays import fill
from demix.papers.scenes.order import Order
from demix.papers.scenes.registry import scene_named


@dataclass(frozen=True)
class Shard:
    """Rows ``first`` to ``last`` of a folder, its latents already there."""

    folder: Path
    order: Order
    first: int
    last: int


def shards(folder: Path, order: Order) -> list[Shard]:
    """Return a folder in its parts."""
    rows = shard_rows(order)
    starts = range(0, order.n, rows)
    return [Shard(folder, order, first, min(first + rows, order.n)) for first in starts]


def shard_rows(order: Order) -> int:
    """Return how many rows are rendered at a time, for a few seconds."""
    return 1 if order.engine == "blender" else min(256, max(1, (1 << 20) // order.size**2))


def checksum(*raw: bytes | memoryview) -> str:
    """Return the SHA-256 of some bytes, as much of it as tells damage."""
    digest = hashlib.sha256()
    for part in raw:
        digest.update(part)
    return digest.hexdigest()[:16]


def rendered(todo: Sequence[Shard], jobs: int | None) -> Generator[str, None, None]:
    """Render shards and yield, in their order, the checksum of each.

    Embree is called for a few thousand rays at a time, between which NumPy holds the interpreter's
    lock: processes fill the cores, threads do not.
    """
    jobs = jobs or cores()
    # Blender fills the cores by itself.
    if todo and todo[0].order.engine == "blender":
        jobs = 1
    if min(jobs, len(todo)) <= 1:
        yield from map(_render, todo)
        return
    with process_environment():  # a process that keeps track of the others
        # Forked processes would inherit threads' locks, those of torch for example.
        pool = ProcessPoolExecutor(
            min(jobs, len(todo)), mp_context=get_context("spawn"), initializer=_begin
        )
    try:
        with process_environment():
            checksums = pool.map(_render, todo)
        yield from checksums
    except BrokenProcessPool as error:
        raise DemixError(
            "A process that renders was ended from outside, perhaps for want of memory; run the "
            "same command again to go on where it stopped, with fewer jobs if need be."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Leave Ctrl-C to the process that began this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _render(shard: Shard) -> str:
    order = shard.order
    draw = _engine(order.engine, order.scene, order.size)
    written = []
    for latents, images in order.files.items():
        z = np.load(shard.folder / f"{latents}.npy", mmap_mode="r")[shard.first : shard.last]
        drawn = np.stack([draw(row) for row in z])
        fill(shard.folder / f"{images}.npy", shard.first, drawn)
        written.append(np.ascontiguousarray(drawn).data)
    return checksum(*written)


@cache
def _engine(engine: str, scene: str, size: int) -> Callable[[np.ndarray], np.ndarray]:
    if engine == "blender":
        from demix.papers.scenes.blender import Blender

        return Blender(size).image
    chosen = scene_named(scene)
    return lambda latents: chosen.image(latents, size)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
