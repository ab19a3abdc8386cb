"""Where labelled samples of a user's data come from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.data import Data
from demix.estimators.split import PARTS, Part, pick, thin
from demix.estimators.views import Augmentation, augmented


class Examples(NamedTuple):
    """Samples ``x`` ``(B, ...)`` and a label ``(B,)`` for each."""

    x: Tensor
    labels: Tensor

    def shuffled(self, order: Tensor) -> Examples:
        """Return the same samples with the labels of others."""
        return Examples(self.x, self.labels[order])

    def taken(self, index: slice | Tensor) -> Examples:
        """Return some of the samples."""
        return Examples(self.x[index], self.labels[index])


class LabelledRows:
    """Rows with class labels; of every class a share is held out.

    Parameters
    ----------
    data : Data
        The rows.
    labels : Tensor (N,) of int64
        The class of each row. A class with one sample is only trained on.
    share : float
        Share of each class that is held out.
    seed : int
        Which rows.
    """

    def __init__(self, data: Data, labels: Tensor, *, share: float, seed: int) -> None:
        self.data, self.labels = data, labels
        random = np.random.default_rng(seed)
        place = np.zeros(len(labels), dtype=np.int64)
        classes = labels.numpy()
        for label in np.unique(classes):
            members = random.permutation(np.flatnonzero(classes == label))
            half = max(1, round(share * len(members) / 2))
            # Judging comes first: a class of two samples has one to be judged by, none to choose.
            place[members[: min(half, len(members) - 1)]] = 2
            place[members[half : min(2 * half, len(members) - 1)]] = 1
        self.units = {
            part: torch.from_numpy(np.flatnonzero(place == number))
            for number, part in enumerate(PARTS)
        }
        empty = [part for part, units in self.units.items() if len(units) == 0]
        if empty:
            raise DemixError(
                f"With {len(np.unique(classes))} classes and n_samples={len(labels)} none is left "
                f"to {empty[0]} with; give at least 3 samples of some class."
            )

    def __len__(self) -> int:
        """Return how many rows are trained on."""
        return len(self.units["train"])

    def sample(self, size: int, *, generator: torch.Generator) -> Examples:
        """Draw samples to train on, to the generator's device."""
        return self._examples(pick(self.units["train"], size, generator), generator)

    def held_out(
        self, part: Part, most: int, *, generator: torch.Generator
    ) -> tuple[Examples, Tensor]:
        """Return at most ``most`` samples of a part, and the group ``(B,)`` of each."""
        units = thin(self.units[part], most)
        return self._examples(units, generator), units

    def _examples(self, units: Tensor, generator: torch.Generator) -> Examples:
        device = generator.device
        return Examples(self.data.take(units).to(device), self.labels[units].to(device))


class InstanceRows:
    """Rows that are their own labels, seen through a callable that changes them a little.

    A row of the table exists for every sample, so that no sample can be held out. New views are,
    which come from another generator.

    Parameters
    ----------
    data : Data
        The rows.
    augmentation : callable
        As in :class:`AugmentedPairs`.
    """

    def __init__(self, data: Data, augmentation: Augmentation) -> None:
        self.data, self.augmentation = data, augmentation
        self.units = torch.arange(len(data))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.units)

    def sample(self, size: int, *, generator: torch.Generator) -> Examples:
        """Draw views to train on, to the generator's device."""
        return self._examples(pick(self.units, size, generator), generator)

    def held_out(
        self, part: Part, most: int, *, generator: torch.Generator
    ) -> tuple[Examples, Tensor]:
        """Return new views of at most ``most`` rows, and the group ``(B,)`` of each."""
        units = thin(self.units, most)
        return self._examples(units, generator), units

    def _examples(self, units: Tensor, generator: torch.Generator) -> Examples:
        plain = self.data.take(units).to(generator.device)
        views = augmented(plain, self.augmentation, generator)
        return Examples(views, units.to(generator.device))
