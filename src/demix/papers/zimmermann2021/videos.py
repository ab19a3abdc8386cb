"""Rows of Table 3: nearby frames of videos, and models of how they differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE
from demix.losses.similarities import SimilarityName
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.datasets.masks import KittiMasks, kitti_masks
from demix.papers.runner.experiment import Experiment, InputFiles
from demix.papers.runner.run import Run, held_out, trained_facts
from demix.papers.runner.scales import Scale
from demix.papers.runner.score_rows import ScoreRow
from demix.papers.zimmermann2021.pairs import SPACES
from demix.papers.zimmermann2021.slow_vae import SlowVAE
from demix.processes.process import Pairs
from demix.spaces.kinds import Real, space_named
from demix.training.loop import Record
from demix.training.recipe import Recipe

_ASSUMED: dict[SimilarityName | None, str] = {1: "Laplace", 2: "Normal", None: "SlowVAE"}
_SECONDS = {1: 0.05, 5: 0.15}
# Peak rates of the last layer, by space and distance. Neighbouring frames differ less, so that
# latents grow large compared with what they differ by.
_LAST_RATE = {("real", 1): 0.1, ("real", 5): 0.005, ("box", 1): 0.05, ("box", 5): 0.05}
LATENTS = 10
SIDE = 64
# Small masks take little time, and show where pedestrians are more than who they are. SlowVAE draws
# what it sees, and needs more pixels.
_LAPTOP_SIDE, _LAPTOP_SIDE_SLOWVAE = 16, 32
# Frames that are scored: during training, in the end, and at smoke scale.
_EVALUATED, _SCORED, _SMOKE = 2000, 10_000, 200


@dataclass(frozen=True)
class VideoRow(ScoreRow):
    """Frames at most ``delta`` apart, and a model of them; without a similarity, SlowVAE."""

    delta: int
    similarity: SimilarityName | None
    space: Literal["box", "real"]

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        return f"{_ASSUMED[self.similarity]}, {SPACES[self.space]}, {_SECONDS[self.delta]} s"

    def columns(self) -> dict[str, str]:
        """Describe pairs and model for the columns of a table."""
        return {
            "frames apart": f"up to {self.delta}",
            "model": _ASSUMED[self.similarity],
            "space": SPACES[self.space],
        }

    def plan(self, scale: Scale, model: str) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe."""
        paper = scale.name == "paper"
        slowvae = model == "slowvae"
        side = SIDE if paper else _LAPTOP_SIDE_SLOWVAE if slowvae else _LAPTOP_SIDE
        shape = (1, side, side)
        objective: Objective[Any]
        if self.similarity is None:
            objective = SlowVAE(LATENTS, shape)
            encoder = Encoder(shape, Real(2 * LATENTS), body="kitti")
        else:
            objective = InfoNCE(self.similarity, two_sided=not paper)
            # A box that starts too small has no time to grow in few steps.
            size = 5.0 if self.space == "box" and not paper else 1.0
            encoder = Encoder(shape, space_named(self.space, LATENTS), body="kitti", scale=size)
        # A body that learns fast distinguishes pedestrians, not where they are. A last layer that
        # turns fast soon has the axes that its model asks for, if it asks for any.
        recipe = Recipe(
            steps=300_000 if paper else 8000,
            batch=32,
            optimizer="adam" if paper or slowvae else "muon_last",
            matrix_rate=_LAST_RATE[self.space, self.delta],
            rate=1e-4 if paper else 3e-4,
            warmup=0.0 if paper else 0.02,
            decay=not paper,
            whiten=False,
            initialise=False,
            bf16=not paper,
        )
        return encoder, objective, replace(recipe, steps=20, batch=16) if scale.smoke else recipe

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> KittiMasks:
        """Open annotations of videos."""
        return kitti_masks(*files.paths)

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model; None if Ctrl-C ended it.

        As in the paper, 10 000 frames of the set are scored, which training has seen; no factor has
        taken part in it.
        """
        data: KittiMasks = run.inputs
        objective: Any
        encoder, objective, recipe = plan = run.plan(self.plan)
        order = torch.randperm(len(data), generator=held_out(run.seed))
        side = encoder.settings["dim_in"][1]

        def reduced(masks: Tensor) -> Tensor:
            return functional.adaptive_avg_pool2d(masks.float(), side)

        def sample(size: int, *, generator: torch.Generator) -> Pairs:
            pairs = data.sample(size, max_delta_t=self.delta, generator=generator)
            return pairs._replace(x=reduced(pairs.x), x_tilde=reduced(pairs.x_tilde))

        def scored(encoder: Encoder, count: int) -> dict[str, float]:
            rows = order[: _SMOKE if run.scale.smoke else count].sort().values.numpy()
            masks = torch.from_numpy(data.masks[rows])
            latents = torch.cat([encoder(reduced(part)) for part in masks.split(1000)])
            if self.similarity is None:
                latents = objective.latents(latents)
            factors = data.factors[rows]
            return {
                "mcc": float(mean_correlation(latents, factors, method="spearman")),
                "r2": float(affine_r2(latents, factors)),
            }

        def evaluate(encoder: Encoder) -> Record:
            return {"score": 100 * scored(encoder, _EVALUATED)["mcc"]}

        training = run.train(plan, sample, evaluate)
        if training is None:
            return None
        with torch.no_grad():
            scores = scored(encoder, _SCORED)
        return {
            **scores,
            **trained_facts(training),
            "nats_above_optimum": None,
            "objective": "SlowVAE" if self.similarity is None else repr(objective),
            "batch": recipe.batch,
            "frames": len(data),
            "sequences": data.n_sequences,
            "history": training.history,
        }
