"""One cell of a table: one row, one seed, one model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from demix._support.process_group.group import Ranks
from demix.encoders.encoder import Encoder
from demix.losses.contrast import contrast
from demix.metrics.correlation import mean_correlation
from demix.metrics.regression import affine_r2
from demix.papers.reizinger2024.factor_cell import run_factor_cell
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.reizinger2024.label_cell import run_label_cell
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.reizinger2024.readout_cell import run_readout_cell
from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Experiment, Model, Row
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import LOOK, Report, held_out, planned, trained
from demix.papers.zimmermann2021.pairs import PairRow
from demix.papers.zimmermann2021.scene_cell import run_scene_cell
from demix.papers.zimmermann2021.scenes import SceneRow
from demix.papers.zimmermann2021.video_cell import run_video_cell
from demix.papers.zimmermann2021.videos import VideoRow
from demix.processes.process import Process
from demix.theory.optimum import is_matched, latent_loss
from demix.training.loop import Record

_CONTRAST = 1024
_SCORES = {"r2": affine_r2, "mcc": mean_correlation}


def run_cell(
    experiment: Experiment[Row],
    row: Row,
    seed: int,
    scale: Scale,
    model: Model,
    report: Report | None = None,
    *,
    material: Any = None,
) -> dict[str, Any] | None:
    """Train and score one model, together with ranks that follow; None if Ctrl-C ended it.

    Parameters
    ----------
    experiment, row, seed, scale, model
        Which cell.
    material
        What :func:`open_material` made of files, for an experiment that needs them.
    report : Report, optional
        Where it tells how it goes, and where it is kept on the way.

    Returns
    -------
    dict
        The record of ``results.json``, without provenance; scores as fractions.
    """
    ranks = Ranks.current()
    if ranks.leads:
        about = report.about if report else {}
        ranks.broadcast((experiment, row, seed, scale, model, Report(about=about)))
    if isinstance(row, LabelRow):
        measured = run_label_cell(row, seed, scale, model, report)
    elif isinstance(row, PairRow):
        measured = _run_pair_cell(row, seed, scale, model, experiment.score, report)
    elif isinstance(row, VideoRow):
        measured = run_video_cell(row, seed, scale, model, material, report)
    elif isinstance(row, SceneRow):
        measured = run_scene_cell(row, seed, scale, model, material, report)
    elif isinstance(row, ReadOutRow):
        measured = run_readout_cell(row, seed, scale, model, material, report)
    elif isinstance(row, FactorRow):
        measured = run_factor_cell(row, seed, scale, model, material, report)
    else:
        raise TypeError(f"There is no way to run a {type(row).__name__}.")
    if measured is None:
        return None
    return heading(experiment, row, seed, scale, model) | measured


def follow_cells(material: Any) -> None:
    """Take part, on a rank other than 0, in the cells that rank 0 runs, until it has no more."""
    while (cell := Ranks.current().broadcast(None)) is not None:
        run_cell(*cell, material=material)


def heading(
    experiment: Experiment[Row], row: Row, seed: int, scale: Scale, model: Model
) -> dict[str, Any]:
    """Return the part of a record that names the cell."""
    mean, std = row.published(model, experiment.score) or (None, None)
    return {
        "experiment": experiment.name,
        "row": row.number,
        "seed": seed,
        "scale": scale.name,
        "model": model,
        "paper_mean": None if mean is None else round(mean / 100, 6),
        "paper_std": None if std is None else round(std / 100, 6),
    }


def _run_pair_cell(
    row: PairRow, seed: int, scale: Scale, model: Model, score: str, report: Report | None
) -> dict[str, Any] | None:
    process = row.process(scale.dim, seed=seed, draws=scale.draws)
    generator = held_out(seed)
    if model == "identity":
        pairs = process.sample(scale.samples, generator=generator)
        return _scores(pairs.x, pairs.z) | {
            "steps": 0,
            "seconds": 0.0,
            "nats_above_optimum": None,
        }
    encoder, objective, recipe = plan = planned(row, scale, model, seed)
    look = process.sample(LOOK, generator=generator)

    def watch(encoder: Encoder) -> Record:
        value = float(_SCORES[score](encoder(look.x), look.z))
        return {"score": 100 * value, "nats_above_optimum": above(encoder)}

    def above(encoder: Encoder) -> float | None:
        return None if model == "supervised" else nats_above_optimum(process, row, encoder)

    training = trained(plan, process.sample, seed, watch, report)
    if training is None:
        return None
    pairs = process.sample(scale.samples, generator=generator)
    with torch.no_grad():
        latents = encoder(pairs.x)
    return _scores(latents, pairs.z) | {
        "steps": training.steps,
        "seconds": round(training.seconds, 2),
        "nats_above_optimum": above(encoder),
        "objective": repr(objective),
        "batch": recipe.batch,
        "history": training.history,
    }


@torch.no_grad()
def nats_above_optimum(
    process: Process, row: PairRow, encoder: Encoder, *, batches: int = 4, seed: int = 0
) -> float | None:
    """Return the InfoNCE of ``encoder`` less that of the true latents, on the same pairs.

    None where the optimum is not known: a marginal that is not uniform, or another similarity
    than the process implies.
    """
    if not is_matched(process, row.similarity):
        return None
    generator = held_out(seed, part=2)
    gaps = []
    for _ in range(batches):
        pairs = process.sample(_CONTRAST, generator=generator)
        found = contrast(
            encoder(pairs.x), encoder(pairs.x_tilde), similarity=row.similarity, two_sided=True
        )
        gaps.append(float(found - latent_loss(process, pairs, row.similarity)))
    return float(np.mean(gaps))


def _scores(latents: torch.Tensor, factors: torch.Tensor) -> dict[str, float]:
    return {name: float(measure(latents, factors)) for name, measure in _SCORES.items()}
