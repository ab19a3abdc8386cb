"""Images labelled by one of their factors, and a classifier of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder
from demix.estimators.sources import DrawnLabels
from demix.losses.classification import Classification
from demix.metrics.probes.readouts import ProbeSplit
from demix.papers.datasets.factor_images import FactorImages
from demix.papers.datasets.rendered import as_floats
from demix.papers.runner.run import Run
from demix.training.recipe import Recipe

# Shares of images for training and validation; the others are the test set.
_TRAIN, _VALIDATION = 0.8, 0.1
_AT_ONCE = 500  # images that are encoded at a time
_PIXELS = 1024  # numbers that the pixels are reduced to
Encode = Callable[[Tensor], Tensor]
ClassifierPlan = tuple[Encoder, Classification, Recipe]


class LabelledImages:
    """Images of a ``side`` at most, labelled by one factor, in three parts drawn by the seed."""

    def __init__(self, known: FactorImages, factor: str, seed: int, side: int | None) -> None:
        values, numbers = np.unique(known.factor(factor), return_inverse=True)
        if len(values) < 2:
            raise DemixError(
                f"A classifier needs a factor of several values, but all {len(known)} images of "
                f"{known.name} have one {factor!r}."
            )
        self.labels = torch.from_numpy(numbers.astype(np.int64))
        self.split = split_rows(len(known), seed)
        self._known = known
        channels, height, width = known.shape
        side = max(height, width) if side is None else side
        self.shape = (channels, min(height, side), min(width, side))

    def read(self, rows: np.ndarray) -> Tensor:
        """Return images, reduced if they are large."""
        images = as_floats(self._known.read(rows))
        if self.shape == self._known.shape:
            return images
        return functional.adaptive_avg_pool2d(images, self.shape[1:])

    def sample(self, size: int, *, generator: torch.Generator) -> DrawnLabels:
        """Draw images of the training part and their labels."""
        train = self.split.train
        drawn = torch.randint(len(train), (size,), generator=generator, device=generator.device)
        rows = train[drawn.cpu().numpy()]
        return DrawnLabels(self.read(rows), self.labels[rows])

    def train(self, run: Run, plan: ClassifierPlan) -> dict[str, Any] | None:
        """Train the encoder of a plan in place, and return what a record says of it."""
        encoder, objective, recipe = plan

        def scored(rows: np.ndarray) -> tuple[float, float]:
            """Return loss and accuracy."""
            features = torch.cat([encoder(self.read(part)) for part in _blocks(rows)])
            labels = self.labels[rows]
            right = objective.logits(features).argmax(dim=1) == labels
            return float(objective.exact_loss(features, labels)), float(right.float().mean())

        training = run.train(
            plan,
            self.sample,
            lambda _: {"accuracy": scored(self.split.validation)[1]},
            validate=lambda _: scored(self.split.validation)[0],
        )
        if training is None:
            return None
        with torch.no_grad():
            accuracy = scored(self.split.test)[1]
        return {
            "accuracy": accuracy,
            "steps": training.steps,
            "best_step": training.best_step,
            "batch": recipe.batch,
            "history": training.history,
        }

    def initialise(self, plan: ClassifierPlan, seed: int) -> None:
        """Bring the encoder of a plan to where training would begin."""
        encoder, _, recipe = plan
        generator = torch.Generator().manual_seed(seed)
        if recipe.initialise:
            encoder.initialise(generator)
        if recipe.whiten:
            first = self.sample(encoder.whitening.samples, generator=generator)
            encoder.whitening.fit(first.x.flatten(1))
        encoder.eval()

    @torch.no_grad()
    def encoded(self, encode: Encode) -> np.ndarray:
        """Return the features ``(N, d)`` of all images."""
        parts = [encode(self.read(part)) for part in _blocks(np.arange(len(self.labels)))]
        return torch.cat(parts).float().numpy()

    def reduced(self) -> Encode:
        """Return a map to pixels of images halved until they are few enough for a regression."""
        channels, height, width = self.shape
        while channels * height * width > _PIXELS:
            height, width = max(1, height // 2), max(1, width // 2)
        return lambda images: functional.adaptive_avg_pool2d(images, (height, width)).flatten(1)


def split_rows(rows: int, seed: int) -> ProbeSplit:
    """Draw which rows train, choose weights and penalties, and are scored."""
    order = np.random.default_rng([seed, 5]).permutation(rows)
    first, second = int(_TRAIN * rows), int((_TRAIN + _VALIDATION) * rows)
    return ProbeSplit(order[:first], order[first:second], order[second:])


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    return np.array_split(rows, max(1, -(-len(rows) // _AT_ONCE)))
