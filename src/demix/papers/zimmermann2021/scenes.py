"""Rows of Tables 4 and 5 of the first paper: rendered scenes, and encoders of their pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE, LatentMSE
from demix.losses.similarities import SimilarityName
from demix.papers.runner.declaration import Figure, Model, Row
from demix.papers.runner.scales import Scale
from demix.spaces.base import Space
from demix.spaces.box import Box
from demix.spaces.real import Real
from demix.spaces.sphere import Sphere
from demix.training.recipe import Recipe

_SPACES = {"sphere": "Sphere", "box": "Box", "real": "Unbounded"}
_POSITIVES = {"normal": "Normal", "laplace": "Laplace", "augmentations": "Augmentations"}
LATENTS = 10
# What is hard to see, the rotations and the hue of the spotlight, is most of what positives have in
# common: with equal widths easy latents tell a batch apart, and rotations are not found at all.
# Each for all that is easy, the rotations, and the hue of the spotlight.
_FREE, _BOUND = (0.6, 0.2, 0.3), (0.3, 0.25, 0.3)
# With as many outputs as latents, a rotation that is found drives others out. Once all are found,
# widths are to be alike: the harmonics of a narrow latent are slower than a wide one itself.
_FREE_OUTPUTS = 32
Widths = float | tuple[float, ...]


@dataclass(frozen=True)
class SceneRow(Row):
    """Positives of a kind, and a model of them.

    ``paper`` holds, for each model, the figures of ``r2``, ``mcc`` on the test set (Table 4) and
    ``r2_train``, ``mcc_train`` on the training set (Table 5).
    """

    positives: Literal["normal", "laplace", "augmentations"]
    model_space: Literal["sphere", "box", "real"]
    similarity: SimilarityName
    matched: bool = False
    paper: Mapping[Model, Mapping[str, Figure]] = field(default_factory=dict)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that the row runs."""
        return tuple(self.paper)

    @property
    def main(self) -> tuple[Model, ...]:
        """The contrastive model."""
        return ("unsupervised",)

    @property
    def assumed(self) -> str:
        """The model's conditional, in the paper's words."""
        return "vMF" if self.similarity == "dot" else "Normal"

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return f"{_POSITIVES[self.positives]} → {_SPACES[self.model_space]}, {self.assumed}"

    def published(self, model: Model, score: str) -> Figure | None:
        """Return the paper's figure."""
        return self.paper.get(model, {}).get(score)

    def cells(self) -> dict[str, str]:
        """Describe pairs and model for the columns of a table."""
        return {
            "positives": _POSITIVES[self.positives],
            "model": f"{_SPACES[self.model_space]}: {self.assumed}",
            "matched": "yes" if self.matched else "no",
        }

    def setting(self) -> Row:
        """Return the row without number and figures."""
        return replace(self, number=0, paper={})

    def facts(self) -> dict[str, Any]:
        """Describe pairs and model for a machine."""
        return {
            "positives": self.positives,
            "model_space": self.model_space,
            "model_conditional": self.assumed,
            "matched": self.matched,
        }

    def threads(self, scale: Scale) -> int | None:
        """Use all cores for one training: an hour of two is more than a sweep has cells for."""
        return scale.threads if scale.smoke else None

    def stages(self, scale: Scale, model: Model) -> list[tuple[Widths, int]]:
        """Return widths and steps for positives that are drawn, from images without pairs.

        The last stage is that of :meth:`plan`. Another one before it is that of :meth:`free`.
        """
        if scale.name == "paper":
            return [(0.1, 200_000)]
        free, bound = _widths(*_FREE), _widths(*_BOUND)
        if model == "supervised":
            return [(bound, 10 if scale.smoke else 4000)]
        return [(free, 10), (bound, 10)] if scale.smoke else [(free, 12_000), (bound, 2000)]

    def free(self, scale: Scale, shape: tuple[int, int, int]) -> tuple[Encoder, Objective[Any]]:
        """Return encoder and objective of a first stage, with outputs to spare and no bounds."""
        outputs = LATENTS + 2 if scale.smoke else _FREE_OUTPUTS
        return Encoder(shape, Real(outputs), body="compact"), InfoNCE(2)

    def plan(
        self, scale: Scale, model: Model, shape: tuple[int, int, int], *, drawn: bool
    ) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe for images of a shape, with pairs drawn or not."""
        supervised, paper = model == "supervised", scale.name == "paper"
        space: Space = {
            "sphere": Sphere(LATENTS),
            "box": Box(LATENTS, low=-1.0, high=1.0),
            "real": Real(LATENTS),
        }["real" if supervised else self.model_space]
        objective: Objective[Any]
        if supervised:
            objective = LatentMSE()
        else:
            objective = InfoNCE(self.similarity, two_sided=not paper)
        # A space that starts too small has no time to grow in few steps. One that takes over
        # latents is to fit them: in a larger box they would turn away from its axes.
        fits = drawn and isinstance(space, Box)
        size = 1.0 if paper or isinstance(space, Real) else 1.8 if fits else 3.0
        encoder = Encoder(shape, space, body="resnet18" if paper else "compact", scale=size)
        if paper:
            recipe = Recipe(
                steps=200_000,
                batch=512,
                optimizer="adam",
                rate=1e-4,
                warmup=0.0,
                decay=False,
                whiten=False,
                initialise=False,
            )
        else:
            # Few, so that a row is made in a quarter of an hour; the looks still rise at the end.
            steps = 4000 if supervised else 1000
            recipe = Recipe(steps=steps, batch=256, rate=2e-3, bf16=True)
        return encoder, objective, replace(recipe, steps=10, batch=16) if scale.smoke else recipe


def _widths(easy: float, rotation: float, spotlight_hue: float) -> tuple[float, ...]:
    """Return one for each of position, rotation, angle of the spotlight, and the three hues."""
    return (easy,) * 3 + (rotation,) * 3 + (easy,) * 2 + (spotlight_hue, easy)
