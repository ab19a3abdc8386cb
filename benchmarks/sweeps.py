"""A sweep by several processes beside the same sweep by one."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.processes import run_module
from benchmarks.timing import Say, interleaved, medians, ratios
from demix.papers.workers.executors import open_executor

if TYPE_CHECKING:  # it waits for torch
    from benchmarks.sizes import Sizes

WORKERS = 2
# As `demix reproduce` does.
_LOADED = ("demix.papers.experiments", "demix.papers.runner.reproduce")


def measure_sweep(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time whole commands, from an empty folder to the tables, imports included.

    Returns
    -------
    dict
        ``cells``, ``workers``, ``seconds`` by name, and the ``share`` of the time of one process
        that so many workers take.
    """
    ways: dict[str, Callable[[], object]] = {
        "one process": lambda: _command(0, sizes),
        "workers": lambda: _command(WORKERS, sizes),
    }
    times = interleaved(ways, max(1, sizes.rounds // 2), say)
    return {
        "cells": sizes.swept,
        "workers": WORKERS,
        "seconds": medians(times),
        "share": ratios(times, "one process")["workers"],
    }


def _command(workers: int, sizes: Sizes) -> None:
    """Sweep in a process of its own, as a user does."""
    with tempfile.TemporaryDirectory() as folder:
        task = json.dumps([workers, sizes.swept, sizes.swept_steps, folder])
        run_module("benchmarks.sweeps", task, what=f"A sweep of {sizes.swept} cells")


def sweep(workers: int, cells: int, steps: int, folder: str) -> None:
    """Run one row with so many seeds, its training cut short."""
    name = f"local:{workers}"
    with nullcontext() if workers == 0 else open_executor(name, preload=_LOADED) as executor:
        # Only now, as the command does it: the workers import at the same time.
        from demix.papers.experiments import experiment_named
        from demix.papers.runner.experiment import Experiment
        from demix.papers.runner.reproduce import reproduce
        from demix.papers.runner.scales import Scale
        from demix.papers.zimmermann2021.pairs import PairRow

        row = experiment_named("clica-table1").rows[1]
        assert isinstance(row, PairRow)
        row = replace(row, laptop=replace(row.laptop, steps=steps), paper={"unsupervised": None})
        table = Experiment("short", "Short cells", ("r2",), (row,), "the benchmark")
        scale = Scale("short", draws=1000, samples=10_000)
        reproduce(table, f"{folder}/out", seeds=range(cells), scale=scale, executor=executor)


if __name__ == "__main__":
    sweep(*json.loads(sys.argv[1]))
