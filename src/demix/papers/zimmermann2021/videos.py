"""Rows of Table 3 of the first paper: nearby frames of videos, and models of how they differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE
from demix.losses.similarities import SimilarityName
from demix.papers.runner.declaration import Figure, Model, Row
from demix.papers.runner.scales import Scale
from demix.papers.zimmermann2021.slow_vae import SlowVAE
from demix.spaces.names import space_named
from demix.spaces.real import Real
from demix.training.recipe import Recipe

_SPACES = {"box": "Box", "real": "Unbounded"}
_ASSUMED: dict[SimilarityName | None, str] = {1: "Laplace", 2: "Normal", None: "SlowVAE"}
_SECONDS = {1: 0.05, 5: 0.15}
# Peak rates of the last layer, by space and distance. Neighbouring frames differ less, so that
# latents grow large beside what they differ by.
_LAST_RATE = {("real", 1): 0.1, ("real", 5): 0.005, ("box", 1): 0.05, ("box", 5): 0.05}
LATENTS = 10
SIDE = 64
# Small masks take little time, and show where pedestrians are more than who they are. SlowVAE draws
# what it sees, and needs more pixels.
_LAPTOP_SIDE, _LAPTOP_SIDE_SLOWVAE = 16, 32


@dataclass(frozen=True)
class VideoRow(Row):
    """Frames at most ``delta`` apart, and a model of them; without a similarity, SlowVAE."""

    delta: int
    similarity: SimilarityName | None
    space: Literal["box", "real"]
    paper: Figure

    @property
    def models(self) -> tuple[Model, ...]:
        """The one model of the row."""
        return ("slowvae" if self.similarity is None else "unsupervised",)

    @property
    def main(self) -> tuple[Model, ...]:
        """The same."""
        return self.models

    @property
    def assumed(self) -> str:
        """The model's conditional, in the paper's words."""
        return _ASSUMED[self.similarity]

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return f"{self.assumed}, {_SPACES[self.space]}, {_SECONDS[self.delta]} s"

    def published(self, model: Model, score: str) -> Figure | None:
        """Return the paper's figure; it gives one score."""
        return self.paper if score == "mcc" else None

    def cells(self) -> dict[str, str]:
        """Describe pairs and model for the columns of a table."""
        return {
            "frames apart": f"up to {self.delta}",
            "model": self.assumed,
            "space": _SPACES[self.space],
        }

    def setting(self) -> Row:
        """Return the row without number and figure."""
        return replace(self, number=0, paper=(0.0, None))

    def facts(self) -> dict[str, Any]:
        """Describe pairs and model for a machine."""
        return {
            "max_delta_t": self.delta,
            "mean_delta_seconds": _SECONDS[self.delta],
            "model_conditional": self.assumed,
            "model_space": self.space,
        }

    def plan(self, scale: Scale, model: Model) -> tuple[Encoder, Objective[Any], Recipe]:
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
        # A body that learns fast tells pedestrians apart, not where they are. A last layer that
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
