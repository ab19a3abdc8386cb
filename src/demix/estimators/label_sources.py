"""Where labelled samples of a user's data come from."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from demix.data.data import Data
from demix.estimators.sources import (
    PARTS,
    Augmentation,
    DrawnLabels,
    Source,
    augmented,
    pick,
    units_of,
)


class LabelledRows(Source[DrawnLabels]):
    """Rows with labels ``(N,)``; a share of every class is held out, but not its only sample."""

    def __init__(
        self, data: Data, labels: Tensor, classes: int, *, share: float, seed: int
    ) -> None:
        self.data, self.labels, self.classes = data, labels, classes
        random = np.random.default_rng(seed)
        place = np.zeros(len(labels), dtype=np.int64)
        known = np.unique(labels.numpy())
        for label in known:
            members = random.permutation(np.flatnonzero(labels.numpy() == label))
            half = max(1, round(share * len(members) / 2))
            # The test comes first: a class of two samples has one for it, and none to validate.
            place[members[: min(half, len(members) - 1)]] = 2
            place[members[half : min(2 * half, len(members) - 1)]] = 1
        few = (
            f"With {len(known)} classes and n_samples={len(labels)} none is left for {{part}}; "
            "give at least 3 samples of some class."
        )
        self.units = units_of(place, few=few)

    def guess(self) -> Tensor:
        """Return the logarithms of the frequencies of the classes."""
        # A class without a row yet is as good as absent, but not impossible.
        counts = torch.bincount(self.labels, minlength=self.classes).double().clamp_min(1e-6)
        return (counts / counts.sum()).log()

    def _batch(self, units: Tensor, generator: torch.Generator) -> DrawnLabels:
        device = generator.device
        return DrawnLabels(self.data.take(units).to(device), self.labels[units].to(device))


class InstanceRows(Source[DrawnLabels]):
    """Rows that are their own labels, seen through a callable that changes them a little.

    Every sample has a prototype of its own, so no sample can be held out. Validation and test use
    new views of all rows, which come from another generator.
    """

    def __init__(self, data: Data, augmentation: Augmentation) -> None:
        self.data, self.augmentation = data, augmentation
        self.units = dict.fromkeys(PARTS, torch.arange(len(data)))

    def partners(self, size: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw two views each of some rows."""
        units = pick(self.units["train"], size, generator)
        first, second = (self._batch(units, generator).x for _ in range(2))
        return first, second

    def guess(self) -> Tensor:
        """Return the same for all rows."""
        return torch.full((len(self.data),), -math.log(len(self.data)), dtype=torch.float64)

    def _batch(self, units: Tensor, generator: torch.Generator) -> DrawnLabels:
        plain = self.data.take(units).to(generator.device)
        views = augmented(plain, self.augmentation, generator)
        return DrawnLabels(views, units.to(generator.device))
