"""``python -m benchmarks.real.tuning``: what settings of peers do, on sets not in the table."""

from __future__ import annotations

import sys
import time
import warnings
from itertools import product
from statistics import mean
from typing import Any

from benchmarks.real import peers
from benchmarks.real.scoring import read_outs
from benchmarks.real.sets import TUNED_ON
from benchmarks.real.task import CACHE

SEED = 100
_GRIDS: dict[str, tuple[Any, dict[str, tuple[Any, ...]]]] = {
    "VAMPNet": (
        peers.vamp_net,
        {"reduced": (True, False), "rate": (5e-4, 1e-3)},
    ),
    "CEBRA": (
        peers.cebra_time,
        {"reduced": (True, False), "temperature": (0.1, 1.0), "iterations": (1500,)},
    ),
}


def main(names: list[str]) -> None:
    """Print the read-outs of all settings of some peers, or of all, on each set."""
    for peer in names or list(_GRIDS):
        fit, grid = _GRIDS[peer]
        for values in product(*grid.values()):
            changed = dict(zip(grid, values, strict=True))
            start = time.process_time()
            scores = [
                score
                for dataset in TUNED_ON.values()
                for ways in _scores(fit, dataset.load(CACHE), changed)
                for score in ways.values()
            ]
            seconds = time.process_time() - start
            said = " ".join(f"{score:.3f}" for score in scores)
            print(f"{peer} {changed}: {mean(scores):.3f} ({said}), {seconds:.0f} s", flush=True)


def _scores(fit: Any, task: Any, changed: dict[str, Any]) -> list[dict[str, float]]:
    return list(read_outs(task, fit(task, SEED, **changed)).values())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
