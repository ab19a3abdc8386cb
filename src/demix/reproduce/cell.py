"""One cell of a table: one row, one seed, one type of model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from demix.encoders import Encoder
from demix.experiments import Experiment, Model, Row, Scale
from demix.objectives import contrast, is_matched, latent_loss
from demix.processes import Process
from demix.scores import affine_r2, mean_correlation
from demix.training import Record, train

# Held-out draws must never meet the training draws, which use the plain seed.
_HELD_OUT = 2**40
_LOOK = 4096
_CONTRAST = 1024


def run_cell(
    experiment: Experiment,
    row: Row,
    seed: int,
    scale: Scale,
    model: Model,
    report: Callable[[int, int, Record], None] | None = None,
) -> dict[str, Any] | None:
    """Train and score one model; None if Ctrl-C ended it.

    Parameters
    ----------
    experiment, row, seed, scale, model
        Which cell.
    report : callable, optional
        ``report(step, steps, record)`` after every step.

    Returns
    -------
    dict
        The record of ``results.json``, without provenance; scores as fractions.
    """
    process = row.process(scale.dim, seed=seed, draws=scale.draws)
    published = row.paper[model]
    record: dict[str, Any] = {
        "experiment": experiment.name,
        "row": row.number,
        "seed": seed,
        "scale": scale.name,
        "model": model,
        "paper_mean": None if published is None else round(published[0] / 100, 6),
        "paper_std": None if published is None else round(published[1] / 100, 6),
    }
    held_out = torch.Generator().manual_seed(_HELD_OUT + seed)
    if model == "identity":
        pairs = process.sample(scale.samples, generator=held_out)
        return (
            record
            | _scores(pairs.x, pairs.z)
            | {
                "steps": 0,
                "seconds": 0.0,
                "nats_above_optimum": None,
            }
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3 * _HELD_OUT + seed)  # where torch's own initialisation stays
        encoder, objective, recipe = scale.plan(row, model)
    look = process.sample(_LOOK, generator=held_out)

    def watch(encoder: Encoder) -> Record:
        score = _scores(encoder(look.x), look.z)[experiment.score]
        return {"score": 100 * score, "nats_above_optimum": above(encoder)}

    def above(encoder: Encoder) -> float | None:
        return None if model == "supervised" else nats_above_optimum(process, row, encoder)

    training = train(
        encoder,
        process.sample,
        objective,
        recipe,
        seed=seed,
        watch=watch,
        report=None if report is None else lambda step, last: report(step, recipe.steps, last),
    )
    if training.interrupted:
        return None
    pairs = process.sample(scale.samples, generator=held_out)
    with torch.no_grad():
        latents = encoder(pairs.x)
    return (
        record
        | _scores(latents, pairs.z)
        | {
            "steps": training.steps,
            "seconds": round(training.seconds, 2),
            "nats_above_optimum": above(encoder),
            "objective": repr(objective),
            "batch": recipe.batch,
            "history": training.history,
        }
    )


@torch.no_grad()
def nats_above_optimum(
    process: Process, row: Row, encoder: Encoder, *, batches: int = 4, seed: int = 0
) -> float | None:
    """Return the InfoNCE of ``encoder`` less that of the true latents, on the same pairs.

    None where the optimum is not known: a marginal that is not uniform, or another similarity
    than the process implies.
    """
    if not is_matched(process, row.similarity):
        return None
    generator = torch.Generator().manual_seed(2 * _HELD_OUT + seed)
    gaps = []
    for _ in range(batches):
        pairs = process.sample(_CONTRAST, generator=generator)
        found = contrast(
            encoder(pairs.x), encoder(pairs.x_tilde), similarity=row.similarity, two_sided=True
        )
        gaps.append(float(found - latent_loss(process, pairs, row.similarity)))
    return float(np.mean(gaps))


def _scores(latents: torch.Tensor, factors: torch.Tensor) -> dict[str, float]:
    return {
        "r2": float(affine_r2(latents, factors)),
        "mcc": float(mean_correlation(latents, factors)),
    }
