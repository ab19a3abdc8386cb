"""A cell with videos: frames that are near in time, and factors that were measured in them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from demix.encoders.encoder import Encoder
from demix.metrics.correlation import mean_correlation
from demix.metrics.regression import affine_r2
from demix.papers.datasets.masks import KittiMasks
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import Report, held_out, planned, trained
from demix.papers.zimmermann2021.slow_vae import SlowVAE
from demix.papers.zimmermann2021.videos import VideoRow
from demix.processes.process import Pairs
from demix.training.loop import Record

_LOOK, _SCORED = 2000, 10_000
_SMOKE = 200


def run_video_cell(
    row: VideoRow,
    seed: int,
    scale: Scale,
    model: Model,
    data: KittiMasks,
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Train and score one model; None if Ctrl-C ended it.

    As in the paper, 10 000 frames of the set are scored, which training has seen; no factor has
    taken part in it.
    """
    encoder, objective, recipe = plan = planned(row, scale, model, seed)
    order = torch.randperm(len(data), generator=held_out(seed))
    side = encoder.settings["dim_in"][1]

    def reduced(masks: Tensor) -> Tensor:
        return functional.adaptive_avg_pool2d(masks.float(), side)

    def sample(size: int, *, generator: torch.Generator) -> Pairs:
        pairs = data.sample(size, max_delta_t=row.delta, generator=generator)
        return pairs._replace(x=reduced(pairs.x), x_tilde=reduced(pairs.x_tilde))

    def scored(encoder: Encoder, count: int) -> dict[str, float]:
        rows = order[:count].sort().values.numpy()
        masks = torch.from_numpy(data.masks[rows])
        outputs = torch.cat([encoder(reduced(part)) for part in masks.split(1000)])
        latents = objective.latents(outputs) if isinstance(objective, SlowVAE) else outputs
        factors = data.factors[rows]
        return {
            "mcc": float(mean_correlation(latents, factors, method="spearman")),
            "r2": float(affine_r2(latents, factors)),
        }

    def watch(encoder: Encoder) -> Record:
        return {"score": 100 * scored(encoder, _SMOKE if scale.smoke else _LOOK)["mcc"]}

    training = trained(plan, sample, seed, watch, report)
    if training is None:
        return None
    with torch.no_grad():
        scores = scored(encoder, _SMOKE if scale.smoke else _SCORED)
    return scores | {
        "steps": training.steps,
        "seconds": round(training.seconds, 2),
        "nats_above_optimum": None,
        "objective": repr(objective) if not isinstance(objective, SlowVAE) else "SlowVAE",
        "batch": recipe.batch,
        "frames": len(data),
        "sequences": data.n_sequences,
        "history": training.history,
    }
