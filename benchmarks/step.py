"""A training step beside the paper's, and the machine's own limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from benchmarks.dense import dense_bytes, dense_step
from benchmarks.sizes import Sizes
from benchmarks.timing import Say, interleaved, under
from demix._support.memory import available_memory
from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.papers.experiments import experiment_named
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.scales import scale_named
from demix.papers.zimmermann2021.pairs import PairRow
from demix.processes.process import Pairs, Process
from demix.training.loop import train
from demix.training.recipe import Recipe

ROWS = (("clica-table1", 2), ("clica-table2", 1))
"""The rows that are trained: the sphere with the dot product, the box with L1."""

# Steps of one call: enough that building the optimisers does not count.
_STEPS = {"ours": 2, "laptop": 10}


def row_of(name: str, number: int) -> tuple[Experiment, PairRow]:
    """Return an experiment of pairs and one of its rows."""
    experiment = experiment_named(name)
    row = experiment.rows[number - 1]
    assert isinstance(row, PairRow)
    return experiment, row


def measure_steps(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time one step of each form of training, and products of large matrices beside them.

    Returns
    -------
    dict
        ``entries``, one per row, with seconds of a ``dense`` step (None where it does not fit), of
        ``ours`` (the paper's encoder and batch with `contrast`) and of the ``laptop`` recipe, and
        the share of the machine's ``float32`` rate that ``ours`` reaches; the ``rates``
        themselves, in operations per second.
    """
    entries = [_entry(name, number, sizes, say) for name, number in ROWS]
    float32 = median(rate for entry in entries for rate in entry.pop("rates"))
    half = _product(sizes.half_matrix, torch.bfloat16)
    times = interleaved({"bfloat16 product": half}, sizes.rounds, say)["bfloat16 product"]
    rates = {"float32": float32, "bfloat16": 2 * sizes.half_matrix**3 / median(times)}
    return {"batch": sizes.paper_batch, "entries": entries, "rates": rates}


def _entry(name: str, number: int, sizes: Sizes, say: Say) -> dict[str, Any]:
    _, row = row_of(name, number)
    process = row.process(sizes.dim, seed=0, draws=100)
    ours, flops = _ours(row, process, sizes)
    calls: dict[str, Callable[[], object]] = {
        "dense": dense_step(row, process, sizes.paper_batch),
        "ours": ours,
        "laptop": _laptop(row, process, sizes),
        "product": _product(sizes.matrix, torch.float32),
    }
    need = dense_bytes(sizes.paper_batch, sizes.dim, row.similarity)
    if need > available_memory() // 2:
        del calls["dense"]
    times = interleaved(calls, sizes.rounds, under(f"step of {name}, row {number}", say))
    for form, steps in _STEPS.items():
        times[form] = [seconds / steps for seconds in times[form]]
    rates = [2 * sizes.matrix**3 / seconds for seconds in times["product"]]
    return {
        "experiment": name,
        "row": number,
        "seconds": {
            form: median(times[form]) if form in times else None
            for form in ("dense", "ours", "laptop")
        },
        "flops": flops,
        "share_of_peak": median(
            flops / seconds / rate for seconds, rate in zip(times["ours"], rates, strict=True)
        ),
        "rates": rates,
    }


def _ours(row: PairRow, process: Process, sizes: Sizes) -> tuple[Callable[[], object], int]:
    """Return a call of two steps of the paper's training with `contrast`, and its operations."""
    plan = row.plan(replace(scale_named("paper"), dim=sizes.dim), "unsupervised")
    encoder, objective, recipe = plan
    recipe = replace(recipe, batch=sizes.paper_batch)
    widths = [sizes.dim, *encoder.settings["hidden"], sizes.dim]
    # Both sides of the pairs are encoded.
    flops = matmul_flops(widths, 2 * recipe.batch)
    return steps_of(encoder, process, objective, recipe, _STEPS["ours"]), flops


def _laptop(row: PairRow, process: Process, sizes: Sizes) -> Callable[[], object]:
    plan = row.plan(replace(scale_named(sizes.scale), dim=sizes.dim), "unsupervised")
    encoder, objective, recipe = plan
    return steps_of(encoder, process, objective, recipe, _STEPS["laptop"])


def steps_of(
    encoder: Encoder, process: Process, objective: Objective[Pairs], recipe: Recipe, steps: int
) -> Callable[[], object]:
    """Return a call of ``steps`` steps of the real training loop, without its preparations."""
    short = replace(recipe, steps=steps, whiten=False, initialise=False)

    def call() -> None:
        if train(encoder, process.sample, objective, short).interrupted:
            raise KeyboardInterrupt  # which training takes as its own end

    return call


def matmul_flops(widths: Sequence[int], rows: int) -> int:
    """Return the operations of the matrix products of an MLP, forward and backward.

    ``2 m n k`` per product; backward has one product for the weights and one for the input of each
    layer, of which the first layer needs none.

    Parameters
    ----------
    widths : sequence of int
        Of the input, of each layer and of the output.
    rows : int
        Rows of the input.

    Examples
    --------
    >>> from benchmarks.step import matmul_flops
    >>> matmul_flops([10, 20, 5], rows=1)
    1400
    """
    layers = [2 * rows * width * wider for width, wider in pairwise(widths)]
    return 3 * sum(layers) - layers[0]


def _product(side: int, dtype: torch.dtype) -> Callable[[], object]:
    a, b = torch.randn(2, side, side).to(dtype)
    return lambda: torch.mm(a, b)
