"""Which methods run on which kind of data, by name."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real import ours, peers
from benchmarks.real.scoring import read_outs
from benchmarks.real.sets import SETS
from benchmarks.real.task import Kind
from demix.papers.workers.executors import threads

OURS, LINEAR = "demix", "demix linear"
PEERS: dict[Kind, dict[str, peers.Peer]] = {
    "series": {
        "PCA": peers.principal,
        "FastICA": peers.fast_ica,
        "TICA": peers.slow,
        "VAMPNet": peers.vamp_net,
        "CEBRA": peers.cebra_time,
    },
    "labels": {
        "PCA": peers.principal,
        "FastICA": peers.fast_ica,
        "LDA": peers.discriminant,
        "MLP classifier": peers.classifier,
        "CEBRA": peers.cebra_labels,
    },
    "views": {
        "PCA": peers.principal,
        "FastICA": peers.fast_ica,
        "CCA": peers.canonical,
        "VAMPNet": peers.vamp_net_of_views,
    },
}
METHODS = {kind: [OURS, LINEAR, *of] for kind, of in PEERS.items()}
ALL = list(dict.fromkeys(name for names in METHODS.values() for name in names))


Cell = tuple[str, str, int]
"""A set, a method and a seed."""


def latents_file(cache: Path, cell: Cell) -> Path:
    """Return where held-out latents are kept, which the agreement of seeds needs."""
    return cache / "latents" / "{}-{}-{}.npy".format(*cell).replace(" ", "-")


def run_one(cell: Cell, cache: Path) -> dict[str, Any]:
    """Run a method on one thread: scores, seconds of the clock and of the processor.

    Latents of held-out rows are kept in the cache.
    """
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _run(cell, cache)


def _run(cell: Cell, cache: Path) -> dict[str, Any]:
    name, method, seed = cell
    dataset = SETS[name]
    task = dataset.load(cache)
    wall, processor = time.perf_counter(), time.process_time()
    if method == OURS:
        model, given = ours.fitted(task, seed)
        latents = model.transform(task.x)
    else:
        run = ours.linear if method == LINEAR else PEERS[dataset.kind][method]
        latents = run(task, seed)
    more = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    if method == OURS:
        more |= ours.told(model, task, given)
    file = latents_file(cache, cell)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, latents[task.fitted :])
    about = {"shape": list(task.x.shape), "n_latents": task.n_latents, "lag": task.lag}
    return {"scores": read_outs(task, latents), "task": about, **more}
