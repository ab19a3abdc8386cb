"""Run one variant on one row at the cost of the baseline, and score it."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from benchmarks.search.plan import Plan, baseline
from benchmarks.search.trainer import Trainer
from benchmarks.search.variants import BASELINE, Variant
from demix._support.errors import DemixError
from demix._support.provenance import provenance
from demix.encoders.encoder import Encoder
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.experiments import experiment_named
from demix.papers.runner.scales import Scale
from demix.papers.zimmermann2021.pairs import PairRow
from demix.processes.process import Process

SEARCHED = ("t1:1", "t1:2", "t2:1", "t2:2")
HELD_BACK = ("t1:11", "t2:5")  # for the final check; no choice may rest on them

# Held-out draws must never meet the training draws, which use the plain seed.
_HELD_OUT = 2**40
_SAMPLES = 10_000
_WARM_UP, _MEASURED = 5, 20
# Seconds after which a step's cost is known well enough; only emulated arithmetic takes so long.
_PATIENCE = 15.0
_STEPS = {("clica-table1", 1): 300}
_USUAL_STEPS = 600


def row_of(experiment: str, number: int) -> PairRow:
    """Return a row of pairs by its number."""
    row = experiment_named(experiment).rows[number - 1]
    assert isinstance(row, PairRow)
    return row


def cost_ratio(plan: Plan, base: Plan, process: Process) -> float:
    """Return the processor time of a step of ``plan`` over that of ``base``.

    Their steps alternate, so that whatever else the machine does slows both.
    """
    if plan == base:
        return 1.0
    ours, theirs = (Trainer(each, process, _WARM_UP + _MEASURED, seed=0) for each in (plan, base))
    total = 0.0
    ends = [0.0, *(until for until, _ in plan.batches)]
    rounds = math.ceil(_MEASURED / len(plan.batches))
    for begin, end in pairwise(ends):
        ratios: list[float] = []
        began = time.process_time()
        for i in range(_WARM_UP + rounds):
            ratio = _seconds(ours, plan.batch(begin)) / _seconds(theirs, base.recipe.batch)
            impatient = time.process_time() - began > _PATIENCE
            if i >= _WARM_UP or impatient:
                ratios.append(ratio)
            if impatient and len(ratios) > 2:
                break
        total += (end - begin) * median(ratios)
    return total


def _seconds(trainer: Trainer, batch: int) -> float:
    began = time.process_time()
    trainer.step(batch)
    return time.process_time() - began


def run_variant(
    experiment: str, number: int, variant: Variant, *, seed: int, budget: float, scale: Scale
) -> dict[str, Any] | None:
    """Train and score ``variant`` on a row; None if it changes nothing there.

    ``budget`` multiplies the baseline's steps; a variant whose step costs twice as much gets half
    as many, and its schedule is fitted to them.
    """
    row = row_of(experiment, number)
    base = baseline(row, scale)
    plan = variant.patch(base)
    if plan == base and variant.name != BASELINE:
        return None
    process = row.process(scale.dim, seed=seed, draws=scale.draws)
    outcome: dict[str, Any] = dict.fromkeys(("cost", "steps", "seconds", "r2", "mcc", "failure"))
    try:
        cost = cost_ratio(plan, base, process)
        allowed = budget * _STEPS.get((experiment, number), _USUAL_STEPS)
        steps = max(1, round(allowed / cost))
        outcome |= {"cost": round(cost, 4), "steps": steps}
        trainer = Trainer(plan, process, steps, seed)
        began = time.process_time()
        for _ in range(steps):
            trainer.step()
        outcome["seconds"] = round(time.process_time() - began, 2)
        outcome["r2"], outcome["mcc"] = score(trainer.finish(), process, seed)
    except (DemixError, torch.linalg.LinAlgError) as error:
        outcome["failure"] = str(error)  # a variant that diverges is a result, too
    return {
        "experiment": experiment,
        "row": number,
        "variant": variant.name,
        "factor": variant.factor,
        "seed": seed,
        "budget": budget,
        "score": outcome[experiment_named(experiment).score],
        **outcome,
        "provenance": provenance(),
    }


@torch.no_grad()
def score(encoder: Encoder, process: Process, seed: int) -> tuple[float, float]:
    """Return R² and MCC on fresh pairs, fitted on one half of them and scored on the other."""
    generator = torch.Generator().manual_seed(_HELD_OUT + seed)
    pairs = process.sample(_SAMPLES, generator=generator)
    latents = encoder(pairs.x)
    return float(affine_r2(latents, pairs.z)), float(mean_correlation(latents, pairs.z))
