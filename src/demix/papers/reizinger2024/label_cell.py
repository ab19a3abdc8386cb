"""A cell with labels: scores of latents and of rows, and the distance to the best classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LinearRegression

from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.classification import Classification
from demix.losses.objective import Objective
from demix.losses.prototypes import PrototypeObjective
from demix.metrics.correlation import mean_correlation
from demix.metrics.prototypes import prototypes_r2
from demix.metrics.regression import affine_r2, orthogonality_error
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import LOOK, Report, held_out, planned, trained
from demix.processes.cluster_process import ClusterProcess, Labelled
from demix.theory.optimum import optimum_error
from demix.training.loop import Record


def run_label_cell(
    row: LabelRow,
    seed: int,
    scale: Scale,
    model: Model,
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Train and score one model; None if Ctrl-C ended it.

    Returns
    -------
    dict
        Besides the scores of latents: ``r2_rows`` with clusters held out and ``r2_rows_seen`` with
        rows held out (None where there are no rows, too few clusters, or one row for each),
        ``orthogonality``, ``optimum_error`` and ``singular_mae`` (vMF only), ``logit_size``, the
        root mean square of the centred logits, ``bayes``, the smallest cross-entropy there is (None
        if no density is known), and ``theory``: what Theorem 1 says.
    """
    process = row.process(scale, model, seed=seed)
    encoder, objective, recipe = plan = planned(row, scale, model, seed)
    generator = held_out(seed)
    look = process.sample(LOOK, generator=generator)
    bayes = _bayes(process, look)

    def watch(encoder: Encoder) -> Record:
        latents = encoder(look.x)
        return {
            "score": 100 * float(affine_r2(latents, look.z)),
            "nats_above_optimum": _above(objective, latents, look, bayes),
        }

    sample = process.sample_pairs if model == "infonce" else process.sample
    training = trained(plan, sample, seed, watch, report)
    if training is None:
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
        "singular_mae": _singular_mae(process, latents, batch),
        "logit_size": _logit_size(objective, latents),
        "steps": training.steps,
        "seconds": round(training.seconds, 2),
        "nats_above_optimum": training.history[-1]["nats_above_optimum"],
        "bayes": bayes,
        "theory": {
            "case": theory.case,
            "latents": theory.name,
            "rows": theory.prototypes,
            "reasons": list(theory.reasons),
        },
        "batch": recipe.batch,
        "history": training.history,
    }


def _bayes(process: ClusterProcess, look: Labelled) -> float | None:
    """Return the smallest cross-entropy; noise that is projected on the sphere has no density."""
    if not process.conditional.similarity.exact:
        return None
    return -float(process.log_posterior(look.z, look.labels).mean())


def _above(
    objective: Objective[Any], latents: torch.Tensor, look: Labelled, bayes: float | None
) -> float | None:
    if bayes is None or not isinstance(objective, Classification):
        return None
    return float(objective.exact_loss(latents, look.labels)) - bayes


def _rows(process: ClusterProcess, objective: Objective[Any]) -> dict[str, float | None]:
    """Return the R² of rows, with clusters held out and with rows held out as in the paper."""
    found: dict[str, float | None] = {"r2_rows": None, "r2_rows_seen": None}
    if not isinstance(objective, PrototypeObjective):
        return found
    table, clusters = objective.prototypes(), process.classes_of_labels
    # Few clusters leave too little to fit on once one of them is held out.
    if len(process.vectors) > process.space.dim + 1:
        found["r2_rows"] = float(prototypes_r2(table, process.vectors, clusters))
    if len(table) > len(process.vectors):
        found["r2_rows_seen"] = float(affine_r2(table, process.vectors[clusters]))
    return found


def _logit_size(objective: Objective[Any], latents: torch.Tensor) -> float | None:
    if not isinstance(objective, PrototypeObjective):
        return None
    centred = objective.prototypes().detach() - objective.prototypes().detach().mean(dim=0)
    square = (latents @ (centred.T @ centred / len(centred)) * latents).sum(dim=1)
    return float(square.mean().sqrt())


def _singular_mae(process: ClusterProcess, latents: torch.Tensor, batch: Labelled) -> float | None:
    if not isinstance(process.conditional, VonMisesFisher):
        return None
    linear = LinearRegression().fit(latents.numpy(), batch.z.numpy()).coef_
    values = np.linalg.svd(linear, compute_uv=False)
    return float(np.abs(values - 1 / process.conditional.kappa).mean())


def _optimum_error(
    process: ClusterProcess, objective: Objective[Any], latents: torch.Tensor, batch: Labelled
) -> float | None:
    """Return the error of the optimum's identity, on part of the samples."""
    conditional = process.conditional
    if not (isinstance(objective, Classification) and isinstance(conditional, VonMisesFisher)):
        return None
    return optimum_error(
        objective.prototypes(),
        latents[:LOOK],
        process.vectors[process.classes_of_labels],
        batch.z[:LOOK],
        kappa=conditional.kappa,
    )
