"""A step as estimators take it by default, beside its parts, and a fit on a busy machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.processes import run_module
from benchmarks.sizes import Sizes
from benchmarks.timing import Say, interleaved
from demix.data.data import as_data
from demix.encoders.encoder import Encoder
from demix.estimators.fitting import default_recipe
from demix.estimators.sources import LagPairs
from demix.losses.contrast import contrast
from demix.losses.pairs import InfoNCE
from demix.spaces.kinds import Sphere
from demix.training.loop import train
from demix.training.optimizers import Muon

_COLUMNS, _LATENTS = 50, 3
# Other processes at full load, and seconds without a change of the number of processes.
_OTHERS, _SETTLE = 2, 1.0
_BUSY = "while True: pass"


def measure_everyday(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time a default step on one thread beside its matrix products and its loss, and fits.

    Parameters
    ----------
    sizes : Sizes
        Rows, rounds and steps.
    say : callable
        Told what is measured.

    Returns
    -------
    dict
        ``seconds`` of the ``step``, of its ``products`` (those of Muon among them) and of its
        ``loss``; ``share``, the step over the sum of the two, the median over rounds; ``fit``,
        seconds of a fit ``alone`` and ``beside`` two busy processes, and their ratio ``slower``.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = interleaved(_parts(sizes), sizes.short_rounds, say, time.thread_time)
    finally:
        torch.set_num_threads(before)
    times["step"] = [seconds / sizes.short_steps for seconds in times["step"]]
    rounds = zip(times["step"], times["products"], times["loss"], strict=True)
    return {
        "rows": sizes.series,
        "seconds": {name: median(seconds) for name, seconds in times.items()},
        "share": median(step / (products + loss) for step, products, loss in rounds),
        "fit": _busy_fits(sizes, say),
    }


def _series(rows: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, _COLUMNS)).astype(np.float32)


def _parts(sizes: Sizes) -> dict[str, Callable[[], object]]:
    """Return calls of some steps, of the products of one step, and of its loss."""
    source = LagPairs(as_data(_series(sizes.series)), 1, 1, share=0.2, seed=0)
    encoder = Encoder(_COLUMNS, Sphere(_LATENTS)).initialise()
    recipe = replace(
        default_recipe(len(source), steps=sizes.short_steps), whiten=False, initialise=False
    )
    batch = recipe.batch
    whitening = torch.eye(_COLUMNS)
    rows, latents = torch.randn(2 * batch, _COLUMNS), torch.randn(2 * batch, _LATENTS)
    matrices = [p for p in encoder.parameters() if p.ndim == 2]

    def step() -> None:
        if train(encoder, source.sample, InfoNCE(), recipe).interrupted:
            raise KeyboardInterrupt  # which training takes as its own end

    def loss() -> None:
        sides = latents.clone().requires_grad_().chunk(2)
        contrast(*sides, two_sided=True).backward()

    def products() -> None:
        torch.mm(rows, whitening)
        for number, (narrow, wide) in enumerate(pairwise(layers)):
            torch.mm(narrow, weights[number].T)
            torch.mm(wide.T, narrow)
            if number:
                torch.mm(wide, weights[number])
        for stack in stacks:
            for _ in range(muon.ns_steps):
                gram = torch.bmm(stack, stack.mT)
                torch.bmm(torch.bmm(gram, gram), stack)

    weights = [matrix.detach() for matrix in matrices]
    layers = [rows, *(torch.randn(2 * batch, len(matrix)) for matrix in weights)]
    muon = Muon(matrices)
    shapes = dict.fromkeys(matrix.shape for matrix in weights)
    stacks = [torch.stack([m for m in weights if m.shape == shape]) for shape in shapes]
    stacks = [stack.mT if stack.shape[1] > stack.shape[2] else stack for stack in stacks]
    return {"step": step, "products": products, "loss": loss}


def _busy_fits(sizes: Sizes, say: Say) -> dict[str, float]:
    """Time a fit in a process of its own, alone and beside processes that never wait."""
    alone, beside = [], []
    for number in range(1, sizes.fit_rounds + 1):
        say(f"a fit alone, round {number} of {sizes.fit_rounds}")
        alone.append(_fit_seconds(sizes))
        say(f"a fit beside {_OTHERS} busy processes, round {number} of {sizes.fit_rounds}")
        others = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(_OTHERS)]
        try:
            time.sleep(_SETTLE)
            beside.append(_fit_seconds(sizes))
        finally:
            for other in others:
                other.kill()
                other.wait()
    slower = [b / a for a, b in zip(alone, beside, strict=True)]
    return {"alone": median(alone), "beside": median(beside), "slower": median(slower)}


def _fit_seconds(sizes: Sizes) -> float:
    said = run_module("benchmarks.everyday", str(sizes.series), what="A fit")
    return float(said.splitlines()[-1])


def fit_one(rows: int) -> float:
    """Fit in this process, and return the seconds."""
    from demix.estimators.contrastive import ContrastiveDemixer

    x = np.cumsum(_series(rows), axis=0)
    start = time.perf_counter()
    ContrastiveDemixer(_LATENTS).fit(x)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(fit_one(int(sys.argv[1])))
