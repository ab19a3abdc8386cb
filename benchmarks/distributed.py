"""Strong and weak scaling over ranks of this machine, and what follows for more of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from statistics import median
from typing import Any

from benchmarks.rank_model import Costs, as_data, fitted
from benchmarks.rank_pool import Pool
from benchmarks.rank_tasks import (
    draw_seconds,
    encoder_bytes,
    hop_seconds,
    loss_bytes,
    loss_seconds,
    step_seconds,
)
from benchmarks.sizes import Sizes
from benchmarks.timing import Say

LARGE = 2**20
"""The batch of the predictions."""
DEVICES = (8, 16, 32, 64, 128, 256, 512, 1024)
ACCELERATOR = {"times_faster": 1000.0, "latency": 20e-6, "bandwidth": 25e9}
"""What is assumed of a device that is not here: 1000 cores in one, 20 µs, 25 GB/s to the next."""
_HOPS = (4096, 65_536, 1 << 20, 1 << 24)
_STEPS = 4


def measure_distributed(sizes: Sizes, say: Say, *, method: str = "spawn") -> dict[str, Any]:
    """Time steps, losses and messages on several ranks, and fit the cost model to those of one.

    Returns
    -------
    dict
        ``steps`` with seconds by ranks and batch, ``losses`` (keys gathered, and at hand),
        ``hops``, ``memory``; the fitted ``costs``; ``predicted`` for many ranks like these and for
        assumed accelerators.
    """
    dim, found = sizes.dim, _Found(sizes.rounds, say)
    with ExitStack() as stack:
        pools = {n: stack.enter_context(Pool(n, method=method)) for n in sizes.ranks}
        one, two = pools[1], pools[2]
        calls: dict[tuple[Any, ...], Callable[[], float]] = {}
        for ranks, pool in pools.items():
            for batch in sizes.rank_batches:
                calls["step", ranks, batch] = _call(pool, step_seconds, batch, dim, _STEPS)
        for batch in sizes.rank_batches:
            calls["alone", batch] = _call(one, loss_seconds, batch, dim, False, _STEPS)
            for way in (False, True):
                calls["loss", batch, way] = _call(two, loss_seconds, batch, dim, way, _STEPS)
        for size in _HOPS:
            calls["hop", size] = _call(two, hop_seconds, size, 4 * _STEPS)
        drawn = max(sizes.rank_batches)
        calls["draw", drawn] = _call(one, draw_seconds, drawn, dim, _STEPS)
        found.measure(calls)
        say("memory of a rank")
        large = sizes.large_batch
        weight = two.run(loss_bytes, large, dim)
        gradients = one.run(encoder_bytes, dim)
    costs = fitted(
        dim,
        steps={batch: found["step", 1, batch] for batch in sizes.rank_batches},
        draw=(drawn, found["draw", drawn]),
        losses={batch: found["alone", batch] for batch in sizes.rank_batches},
        hops={size: found["hop", size] for size in _HOPS},
        gradients=gradients,
        copies=weight / (large * dim * 4),
    )
    return {
        "dim": dim,
        "cores": len(os.sched_getaffinity(0)),
        "batch": sizes.rank_batch,
        "steps": [
            {
                "ranks": ranks,
                "batch": batch,
                "seconds": found["step", ranks, batch],
                "speedup": found.ratio(("step", 1, batch), ("step", ranks, batch)),
                "model": _modelled(costs, batch, ranks),
            }
            for ranks in sizes.ranks
            for batch in sizes.rank_batches
        ],
        "losses": [
            {
                "batch": batch,
                "at_hand": found["loss", batch, False],
                "gathered": found["loss", batch, True],
                "added": found.ratio(("loss", batch, True), ("loss", batch, False)) - 1,
            }
            for batch in sizes.rank_batches
        ],
        "hops": [{"bytes": size, "seconds": found["hop", size]} for size in _HOPS],
        "memory": {"batch": large, "bytes": weight},
        "costs": as_data(costs),
        "predicted": {
            name: [device.predicted(LARGE, ranks) for ranks in DEVICES]
            for name, device in (("core", costs), ("accelerator", costs.on(**ACCELERATOR)))
        },
    }


def _modelled(costs: Costs, batch: int, ranks: int) -> float:
    return costs.compute(batch, ranks) + costs.gather(batch, ranks) + costs.average(ranks)


def _call(pool: Pool, task: Callable[..., float], *arguments: Any) -> Callable[[], float]:
    return lambda: float(pool.run(task, *arguments))


class _Found:
    """Medians over rounds, in which everything is measured in turn."""

    def __init__(self, rounds: int, say: Say) -> None:
        self.rounds, self.say = rounds, say
        self.seconds: dict[tuple[Any, ...], list[float]] = {}

    def measure(self, calls: Mapping[tuple[Any, ...], Callable[[], float]]) -> None:
        """Measure all, first in a round that does not count."""
        self.seconds = {key: [] for key in calls}
        for number in range(self.rounds + 1):
            for key, call in calls.items():
                what = " ".join(map(str, key))
                self.say(f"{what}, round {number} of {self.rounds}" if number else what)
                spent = call()
                if number:
                    self.seconds[key].append(spent)

    def __getitem__(self, key: tuple[Any, ...]) -> float:
        return median(self.seconds[key])

    def ratio(self, long: tuple[Any, ...], short: tuple[Any, ...]) -> float:
        """Return the median over rounds of a ratio."""
        pairs = zip(self.seconds[long], self.seconds[short], strict=True)
        return median(a / b for a, b in pairs)
