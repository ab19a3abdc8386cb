"""A cell with labels: scores of latents and of rows, and the distance to the best classifier."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from demix.distributions import VonMisesFisher
from demix.encoders import Encoder
from demix.errors import DemixError
from demix.experiments import LabelRow, Model, Scale
from demix.objectives import Classification, Objective, optimum_error
from demix.processes import ClusterProcess, Labelled
from demix.reproduce.seeds import LOOK, held_out, planned
from demix.scores import affine_r2, mean_correlation, orthogonality_error, rows_r2
from demix.training import Record, train


def run_label_cell(
    row: LabelRow,
    seed: int,
    scale: Scale,
    model: Model,
    report: Callable[[int, int, Record], None] | None = None,
) -> dict[str, Any] | None:
    """Train and score one model; None if Ctrl-C ended it.

    Returns
    -------
    dict
        Besides the scores of latents: ``r2_rows`` with clusters held out and ``r2_rows_seen`` with
        rows held out (None where there are no rows, or too few clusters), ``orthogonality``,
        ``optimum_error`` (vMF only), ``mean_norm`` of the features, ``bayes`` (the smallest
        cross-entropy there is, None if no density is known) and ``theory``: what Theorem 1 says.
    """
    process = row.process(scale, model, seed=seed)
    encoder, objective, recipe = planned(row, scale, model, seed)
    generator = held_out(seed)
    look = process.sample(LOOK, generator=generator)
    bayes = _bayes(process, look)

    def watch(encoder: Encoder) -> Record:
        latents = encoder(look.x)
        return {
            "score": 100 * float(affine_r2(latents, look.z)),
            "nats_above_optimum": _above(objective, latents, look, bayes),
        }

    training = train(
        encoder,
        process.sample_pairs if model == "infonce" else process.sample,
        objective,
        recipe,
        seed=seed,
        watch=watch,
        report=None if report is None else lambda step, last: report(step, recipe.steps, last),
    )
    if training.interrupted:
        return None
    batch = process.sample(scale.samples, generator=generator)
    with torch.no_grad():
        latents = encoder(batch.x)
    theory = row.theory(scale, model, seed=seed)
    return {
        "r2": float(affine_r2(latents, batch.z)),
        "mcc": float(mean_correlation(latents, batch.z)),
        **_rows(process, objective),
        "orthogonality": float(orthogonality_error(latents, batch.z)),
        "optimum_error": _optimum_error(process, objective, latents, batch),
        "mean_norm": float(latents.norm(dim=1).mean()),
        "steps": training.steps,
        "seconds": round(training.seconds, 2),
        "nats_above_optimum": training.history[-1]["nats_above_optimum"],
        "bayes": bayes,
        "theory": {
            "case": theory.case,
            "latents": theory.latents,
            "rows": theory.rows,
            "reasons": list(theory.reasons),
        },
        "batch": recipe.batch,
        "history": training.history,
    }


def _bayes(process: ClusterProcess, look: Labelled) -> float | None:
    try:
        return -float(process.log_posterior(look.z, look.labels).mean())
    except DemixError:
        return None  # noise that was projected on the sphere has no density that we know


def _above(
    objective: Objective[Any], latents: torch.Tensor, look: Labelled, bayes: float | None
) -> float | None:
    if bayes is None or not isinstance(objective, Classification):
        return None
    # A look sums over all rows, and draws none that training would have drawn.
    sampled, objective.sampled = objective.sampled, None
    loss = float(objective.loss(latents, look.labels))
    objective.sampled = sampled
    return loss - bayes


def _rows(process: ClusterProcess, objective: Objective[Any]) -> dict[str, float | None]:
    """Return the R² of rows, with clusters held out and with rows held out as in the paper."""
    found: dict[str, float | None] = {"r2_rows": None, "r2_rows_seen": None}
    if isinstance(objective, torch.nn.Module):
        table = objective.table() if isinstance(objective, Classification) else objective.rows
        clusters = process.classes_of_labels
        # Few clusters leave too little to fit on once some are held out.
        with contextlib.suppress(DemixError):
            found["r2_rows"] = float(rows_r2(table, process.vectors, clusters))
        with contextlib.suppress(DemixError):
            found["r2_rows_seen"] = float(affine_r2(table, process.vectors[clusters]))
    return found


def _optimum_error(
    process: ClusterProcess, objective: Objective[Any], latents: torch.Tensor, batch: Labelled
) -> float | None:
    """Return the error of the optimum's identity, on part of the samples."""
    conditional = process.conditional
    if not (isinstance(objective, Classification) and isinstance(conditional, VonMisesFisher)):
        return None
    return optimum_error(
        objective.table(),
        latents[:LOOK],
        process.vectors[process.classes_of_labels],
        batch.z[:LOOK],
        kappa=conditional.kappa,
    )
