"""Rows of Tables 4 and 5: rendered scenes with known latents, and encoders of their pairs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE
from demix.losses.similarities import SimilarityName
from demix.papers.datasets.rendered import RenderedPairs
from demix.papers.runner.experiment import Experiment, InputFiles
from demix.papers.runner.original import LatentMSE, plain_adam
from demix.papers.runner.run import UNTRAINED, Run, trained_facts
from demix.papers.runner.scales import Scale
from demix.papers.runner.score_rows import ScoreRow
from demix.papers.scenes.folder import Rendered, open_rendered
from demix.papers.zimmermann2021.pairs import SPACES, assumed, latent_scores, model_columns
from demix.spaces.base import Space
from demix.spaces.kinds import Box, Real, Sphere
from demix.training.loop import Record
from demix.training.recipe import Recipe

LATENTS = 10
# What is hard to see, the rotations and the hue of the spotlight, is most of what positives have in
# common: with equal widths easy latents distinguish a batch, and rotations are not found at all.
# Each for all that is easy, the rotations, and the hue of the spotlight.
_FREE, _BOUND = (0.6, 0.2, 0.3), (0.3, 0.25, 0.3)
# With as many outputs as latents, a rotation that is found drives others out. Once all are found,
# widths are to be alike: the harmonics of a narrow latent are slower than a wide one itself.
_FREE_OUTPUTS = 32
Widths = float | tuple[float, ...]
# Images that are scored during training and in the end, and that are encoded at a time.
_EVALUATED, _SCORED, _AT_ONCE = 1000, 25_000, 500
_SMALL = 16


@dataclass(frozen=True)
class SceneRow(ScoreRow):
    """Positives of a kind, and a model of them, on test (Table 4) and training set (Table 5)."""

    positives: Literal["normal", "laplace", "augmentations"]
    model_space: Literal["sphere", "box", "real"]
    similarity: SimilarityName
    matched: bool = False
    main = ("unsupervised",)

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        space = SPACES[self.model_space]
        return f"{self.positives.capitalize()} → {space}, {assumed(self.similarity)}"

    def columns(self) -> dict[str, str]:
        """Describe pairs and model for the columns of a table."""
        model = model_columns(self.model_space, self.similarity, self.matched)
        return {"positives": self.positives.capitalize(), **model}

    def threads(self, scale: Scale) -> int | None:
        """Use all cores for one training: an hour of two is more than a sweep has jobs for."""
        return scale.threads if scale.smoke else None

    def stages(self, scale: Scale, model: str) -> list[tuple[Widths, int]]:
        """Return widths and steps for positives that are drawn; before the last: :meth:`free`."""
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
        self, scale: Scale, model: str, shape: tuple[int, int, int], *, drawn: bool
    ) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe for images of a shape, with pairs drawn or not."""
        supervised, paper = model == "supervised", scale.name == "paper"
        # A space that starts too small has no time to grow in few steps. One that takes over
        # latents is to fit them: in a larger box they would turn away from its axes.
        spaces: dict[str, tuple[Space, float]] = {
            "real": (Real(LATENTS), 1.0),
            "box": (Box(LATENTS, low=-1.0, high=1.0), 1.8 if drawn else 3.0),
            "sphere": (Sphere(LATENTS), 3.0),
        }
        space, size = spaces["real" if supervised else self.model_space]
        objective: Objective[Any]
        if supervised:
            objective = LatentMSE()
        else:
            objective = InfoNCE(self.similarity, two_sided=not paper)
        body = "resnet18" if paper else "compact"
        encoder = Encoder(shape, space, body=body, scale=1.0 if paper else size)
        if paper:
            recipe = plain_adam(steps=200_000, batch=512, rate=1e-4)
        else:
            # Few, so that a row takes a quarter of an hour; the score still rises at the end.
            steps = 4000 if supervised else 1000
            recipe = Recipe(steps=steps, batch=256, rate=2e-3, bf16=True)
        return encoder, objective, replace(recipe, steps=10, batch=16) if scale.smoke else recipe

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> list[Rendered]:
        """Open rendered folders of 3DIdent."""
        folders = [open_rendered(path, verify=files.verify) for path in files.paths]
        for path, rendered in zip(files.paths, folders, strict=True):
            if rendered.order.scene != "3dident":
                raise DemixError(
                    f"{experiment.name} needs {experiment.data}, but {path} holds the scene "
                    f"{rendered.order.scene}."
                )
        return folders

    def folder(self, folders: list[Rendered]) -> Rendered:
        """Return the folder with positives of this kind, else the first one."""
        named = [f for f in folders if (f.order.pairs or "").startswith(self.positives)]
        return (named or folders)[0]

    def digest(self, inputs: list[Rendered]) -> str:
        """Return a checksum of the folder that the row reads."""
        return self.folder(inputs).digest

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model, on images held out and on some it was trained on."""
        folder = self.folder(run.inputs)
        pairs = RenderedPairs(folder, self.positives)
        if run.model == "identity":
            return _all_scores(pairs, _reduced(len(pairs.rows("test", _SCORED)))) | UNTRAINED
        encoder, objective, recipe = run.plan(self.plan, shape=pairs.shape, drawn=pairs.drawn)

        def evaluate(encoder: Encoder) -> Record:
            return {"score": 100 * _scores(pairs, encoder, "test", _EVALUATED)["r2"]}

        stages = [((encoder, objective, recipe), pairs.sample)]
        widths = self.stages(run.scale, run.model) if pairs.drawn else []
        if widths:
            plans = [(encoder, objective)]
            if len(widths) > 1:
                plans = [self.free(run.scale, pairs.shape), *plans]
            stages = [
                (
                    (*plan, replace(recipe, steps=steps)),
                    RenderedPairs(folder, self.positives, wide).sample,
                )
                for plan, (wide, steps) in zip(plans, widths, strict=True)
            ]
        described = [{"widths": np.array(wide).tolist(), "steps": steps} for wide, steps in widths]
        # The rest of a checkpoint's facts would not distinguish widths.
        about = {**run.monitor.about, "stages": described}
        run = replace(run, monitor=replace(run.monitor, about=about))
        training = run.train_in_stages(stages, evaluate)
        if training is None:
            return None
        return {
            **_all_scores(pairs, encoder),
            **trained_facts(training, recipe),
            "nats_above_optimum": None,
            "objective": repr(objective),
            "pairs": "exact" if pairs.exact else self.positives,
            "stages": described,
            "images": pairs.training,
            "size": pairs.shape[1],
        }


def _widths(easy: float, rotation: float, spotlight_hue: float) -> tuple[float, ...]:
    """Return one for each of position, rotation, angle of the spotlight, and the three hues."""
    return (easy,) * 3 + (rotation,) * 3 + (easy,) * 2 + (spotlight_hue, easy)


def _all_scores(pairs: RenderedPairs, encode: Callable[[Tensor], Tensor]) -> dict[str, float]:
    trained_on = _scores(pairs, encode, "train", _SCORED)
    return _scores(pairs, encode, "test", _SCORED) | {
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
    return latent_scores(latents, factors)


def _reduced(rows: int) -> Callable[[Tensor], Tensor]:
    """Return pixels of reduced images, at most 16 x 16, and few enough for a regression."""
    side = min(_SMALL, max(1, int((rows / 12) ** 0.5)))
    return lambda images: torch.nn.functional.adaptive_avg_pool2d(images, side).flatten(1)
