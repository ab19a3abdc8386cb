"""A cell with rendered scenes: images whose latents are known to the last digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demix.encoders.encoder import Encoder
from demix.metrics.correlation import mean_correlation
from demix.metrics.regression import affine_r2
from demix.papers.datasets.rendered import RenderedPairs
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import Report, planned, trained_in_stages
from demix.papers.scenes.opening import Rendered
from demix.papers.zimmermann2021.scenes import SceneRow, Widths
from demix.training.loop import Record

_LOOK, _SCORED = 1000, 25_000
# Images that are encoded at a time.
_AT_ONCE = 500
_SMALL = 16


def run_scene_cell(
    row: SceneRow,
    seed: int,
    scale: Scale,
    model: Model,
    folders: Sequence[Rendered],
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Train and score one model, on images held out and on some it was trained on.

    Returns
    -------
    dict or None
        ``r2``, ``mcc``, ``r2_train``, ``mcc_train``, and whether ``pairs`` were exact; None if
        Ctrl-C ended it.
    """
    named = [f for f in folders if (f.order.pairs or "").startswith(row.positives)]
    folder = (named or list(folders))[0]
    pairs = RenderedPairs(folder, row.positives)
    if model == "identity":
        return {
            **_all_scores(pairs, _reduced(len(pairs.rows("test", _SCORED))), _SCORED),
            **{"steps": 0, "seconds": 0.0, "nats_above_optimum": None},
        }
    encoder, objective, recipe = planned(
        row, scale, model, seed, shape=pairs.shape, drawn=pairs.drawn
    )

    def watch(encoder: Encoder) -> Record:
        return {"score": 100 * _scores(pairs, encoder, "test", _LOOK)["r2"]}

    stages = [((encoder, objective, recipe), pairs.sample)]
    widths = row.stages(scale, model) if pairs.drawn else []
    if widths:
        plans = [(encoder, objective)]
        if len(widths) > 1:
            plans = [row.free(scale, pairs.shape), *plans]
        stages = [
            (
                (*plan, replace(recipe, steps=steps)),
                RenderedPairs(folder, row.positives, wide).sample,
            )
            for plan, (wide, steps) in zip(plans, widths, strict=True)
        ]
    if report is not None:
        # The rest of a checkpoint's facts would not tell widths apart.
        report = replace(report, about={**report.about, "stages": _plain(widths)})
    training = trained_in_stages(stages, seed, watch, report)
    if training is None:
        return None
    return {
        **_all_scores(pairs, encoder, _SCORED),
        "steps": training.steps,
        "seconds": round(training.seconds, 2),
        "nats_above_optimum": None,
        "objective": repr(objective),
        "batch": recipe.batch,
        "pairs": "exact" if pairs.exact else row.positives,
        "stages": _plain(widths),
        "images": pairs.training,
        "size": pairs.shape[1],
        "history": training.history,
    }


def _plain(stages: Sequence[tuple[Widths, int]]) -> list[dict[str, Any]]:
    """Describe stages as a file of JSON gives them back."""
    return [
        {"widths": wide if isinstance(wide, float) else list(wide), "steps": steps}
        for wide, steps in stages
    ]


def _all_scores(
    pairs: RenderedPairs, encode: Callable[[Tensor], Tensor], most: int
) -> dict[str, float]:
    trained_on = _scores(pairs, encode, "train", most)
    return _scores(pairs, encode, "test", most) | {
        f"{name}_train": value for name, value in trained_on.items()
    }


@torch.no_grad()
def _scores(
    pairs: RenderedPairs, encode: Callable[[Tensor], Tensor], part: Any, most: int
) -> dict[str, float]:
    rows = pairs.rows(part, most)
    factors = pairs.rendered.latents[rows]
    blocks = np.array_split(rows, max(1, len(rows) // _AT_ONCE))
    latents = torch.cat([encode(pairs.images(block)) for block in blocks])
    return {
        "r2": float(affine_r2(latents, factors)),
        "mcc": float(mean_correlation(latents, factors)),
    }


def _reduced(rows: int) -> Callable[[Tensor], Tensor]:
    """Return pixels of reduced images, at most 16 x 16, and few enough for a regression."""
    side = min(_SMALL, max(1, int((rows / 12) ** 0.5)))
    return lambda images: torch.nn.functional.adaptive_avg_pool2d(images, side).flatten(1)
