"""A sweep by several processes beside the same sweep by one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from demix.bench.timing import Say, interleaved, medians, ratios
from demix.errors import DemixError
from demix.workers import opened

if TYPE_CHECKING:  # it waits for torch
    from demix.bench.sizes import Sizes

WORKERS = 2


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
        command = [sys.executable, "-P", "-m", "demix.bench.sweeps", task]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DemixError(f"A sweep of {sizes.swept} cells failed: {reason}.")


def sweep(workers: int, cells: int, steps: int, folder: str) -> None:
    """Run one row with so many seeds, its training cut short."""
    with nullcontext() if workers == 0 else opened(f"local:{workers}") as executor:
        # Only now, as the command does it: the workers import at the same time.
        from demix.experiments import Experiment, PairRow, Scale, experiment_named
        from demix.reproduce import reproduce

        row = experiment_named("clica-table1").rows[1]
        assert isinstance(row, PairRow)
        row = replace(row, laptop=replace(row.laptop, steps=steps), paper={"unsupervised": None})
        table = Experiment("short", "Short cells", ("r2",), (row,), "the benchmark")
        scale = Scale("short", draws=1000, samples=10_000)
        reproduce(table, f"{folder}/out", seeds=range(cells), scale=scale, executor=executor)


if __name__ == "__main__":
    sweep(*json.loads(sys.argv[1]))
