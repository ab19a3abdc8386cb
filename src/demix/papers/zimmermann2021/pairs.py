"""Rows of the first paper's tables: positive pairs, and an encoder that contrasts them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from demix.encoders.encoder import Encoder, paper_encoder
from demix.losses.asymptotics import AlignmentUniformity
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE, LatentMSE
from demix.losses.similarities import SimilarityName
from demix.papers.runner.declaration import Distribution, Figure, Model, Row
from demix.papers.runner.scales import Scale
from demix.processes.mixing import LeakyMixing
from demix.processes.process import Pairs, Process
from demix.spaces.names import space_named
from demix.training.recipe import Recipe, paper_recipe

_SPACES = {"sphere": "Sphere", "box": "Box", "real": "Unbounded"}


@dataclass(frozen=True)
class Laptop:
    """How a row is trained at laptop scale.

    ``scale`` is where the size of the output space starts; ``within`` is that of
    :class:`demix.InfoNCE`.
    """

    scale: float
    steps: int = 3000
    batch: int = 1024
    within: int | None = None


@dataclass(frozen=True)
class PairRow(Row):
    """A process of pairs and a model of it: ``"unsupervised"``, ``"supervised"``, ``"identity"``.

    ``limit`` chooses :class:`demix.AlignmentUniformity` over :class:`demix.InfoNCE`, for pairs
    that carry more information than a batch can tell apart. ``paper`` holds the figure of the
    experiment's score for each model.
    """

    space: Literal["sphere", "box", "real"]
    marginal: Distribution
    conditional: Distribution
    model_space: Literal["sphere", "box", "real"]
    similarity: SimilarityName
    laptop: Laptop
    limit: bool = False
    matched: bool = False
    paper: dict[Model, Figure | None] = field(default_factory=dict)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that the row runs."""
        return tuple(self.paper)

    @property
    def main(self) -> tuple[Model, ...]:
        """The contrastive model."""
        return ("unsupervised",)

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return (
            f"{_SPACES[self.space]}, {self.conditional} → {_SPACES[self.model_space]}, "
            f"{self.assumed}"
        )

    def published(self, model: Model, score: str) -> Figure | None:
        """Return the paper's figure; it gives one score."""
        return self.paper.get(model)

    def cells(self) -> dict[str, str]:
        """Describe process and model for the columns of a table."""
        return {
            "process": f"{_SPACES[self.space]}: {self.marginal}, {self.conditional}",
            "model": f"{_SPACES[self.model_space]}: {self.assumed}",
            "matched": "yes" if self.matched else "no",
        }

    def setting(self) -> Row:
        """Return the row without number and figures."""
        return replace(self, number=0, paper={})

    def facts(self) -> dict[str, Any]:
        """Describe process and model for a machine."""
        return {
            "space": self.space,
            "marginal": str(self.marginal),
            "conditional": str(self.conditional),
            "model_space": self.model_space,
            "model_conditional": self.assumed,
            "matched": self.matched,
        }

    def process(self, dim: int, *, seed: int, draws: int) -> Process:
        """Build the generating process with ``dim`` latents; each seed has its own mixing."""
        space = space_named(self.space, dim)
        return Process(
            self.marginal.marginal(space),
            self.conditional.conditional(space),
            LeakyMixing(dim, seed=seed, draws=draws),
        )

    @property
    def assumed(self) -> str:
        """The model's conditional, in the paper's words."""
        if self.similarity == "dot":
            return "vMF"
        return {1: "Laplace", 2: "Normal"}.get(
            int(self.similarity), f"GenNorm(β={self.similarity:g})"
        )

    def plan(self, scale: Scale, model: Model) -> tuple[Encoder, Objective[Pairs], Recipe]:
        """Return encoder, objective and recipe of a trained model."""
        supervised = model == "supervised"
        space = space_named(self.model_space, scale.dim)
        objective: Objective[Pairs] = InfoNCE(self.similarity, within=self.laptop.within)
        if supervised:
            objective = LatentMSE()
        elif self.limit:
            objective = AlignmentUniformity(self.similarity)
        if scale.name == "paper":
            if isinstance(objective, InfoNCE):
                objective = InfoNCE(self.similarity, two_sided=False)
            return paper_encoder(scale.dim, space), objective, paper_recipe(supervised=supervised)
        if supervised:
            # The true latents have unit size, so nothing has to grow.
            encoder, recipe = Encoder(scale.dim, space), Recipe(steps=2000)
        else:
            encoder = Encoder(scale.dim, space, scale=self.laptop.scale)
            recipe = Recipe(steps=self.laptop.steps, batch=self.laptop.batch)
        if scale.smoke:
            recipe = replace(recipe, steps=60, batch=256)
        return encoder, objective, recipe
