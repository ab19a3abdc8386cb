"""Where batches come from: rows are divided into parts for training, validation and test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.data import Data

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
Augmentation = Callable[[Tensor], Tensor]


class DrawnPairs(NamedTuple):
    """``B`` positive pairs of observations: ``x_tilde[i]`` is positive for ``x[i]``."""

    x: Tensor
    x_tilde: Tensor

    def targets(self) -> Tensor:
        """Return which of the keys, all positives, is each sample's ``(B,)``."""
        return torch.arange(len(self.x))


class DrawnLabels(NamedTuple):
    """Samples ``x`` ``(B, ...)`` and a label ``(B,)`` for each."""

    x: Tensor
    labels: Tensor

    def targets(self) -> Tensor:
        """Return which of the classes is each sample's ``(B,)``."""
        return self.labels


Batch = TypeVar("Batch", DrawnPairs, DrawnLabels)


class Source(ABC, Generic[Batch]):
    """Batches of rows of ``data``; its units (rows or pairs) are divided into `PARTS`."""

    data: Data
    units: Mapping[Part, Tensor]

    def __len__(self) -> int:
        """Return how many units are trained on."""
        return len(self.units["train"])

    def sample(self, size: int, *, generator: torch.Generator) -> Batch:
        """Draw a batch to train on, to the generator's device."""
        return self._batch(pick(self.units["train"], size, generator), generator)

    def held_out(
        self, part: Part, most: int, *, generator: torch.Generator
    ) -> tuple[Batch, Tensor]:
        """Return at most ``most`` samples of a part, and the block ``(B,)`` of each.

        Samples of different blocks may be taken as independent.
        """
        units = thin(self.units[part], most)
        return self._batch(units, generator), self._blocks(units)

    def guess(self) -> Tensor | None:
        """Return the log-probability ``(K,)`` of each class without a look at the sample.

        None means that the targets of a batch are the classes, each as probable as another.
        """
        return None

    def lags(self) -> tuple[int, int] | None:
        """Return the smallest and the largest lag of positives, if rows are in time order."""
        return None

    @abstractmethod
    def _batch(self, units: Tensor, generator: torch.Generator) -> Batch:
        """Return a sample for each unit."""

    def _blocks(self, units: Tensor) -> Tensor:
        """Return the block of each unit."""
        return units


def three_parts(count: int, share: float, random: np.random.Generator) -> np.ndarray:
    """Return for each of ``count >= 3`` units the number of its part in `PARTS`.

    A share of them is held out: one half for validation, the other for the test.
    """
    half = max(1, round(share * count / 2))
    if count < 3 or count - 2 * half < 1:
        raise DemixError(
            f"Training, validation and test take at least 3 parts of the data, but with a share "
            f"of {share:g} held out there are {count}; give more data."
        )
    place = np.zeros(count, dtype=np.int64)
    order = random.permutation(count)
    place[order[:half]], place[order[half : 2 * half]] = 1, 2
    return place


def units_of(place: np.ndarray, *, few: str | None = None) -> dict[Part, Tensor]:
    """Return the units of each part; raise a DemixError that ends with ``few`` if one is empty."""
    units = {
        part: torch.from_numpy(np.flatnonzero(place == number)) for number, part in enumerate(PARTS)
    }
    empty = [part for part in PARTS if len(units[part]) == 0]
    if few is not None and empty:
        raise DemixError(few.format(part=empty[0]))
    return units


def connected_rows(pairs: Tensor, rows: int) -> np.ndarray:
    """Return for each row ``(N,)`` the number of the component that pairs ``(P, 2)`` join it to."""
    first, second = pairs.T.numpy()
    links = coo_array((np.ones(len(pairs)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(links, directed=False)[1])


def pick(units: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Draw ``size`` of the units ``(U,)``, each at most once while there are enough of them."""
    device = generator.device
    if size <= len(units) <= 16 * size:
        chosen = torch.randperm(len(units), generator=generator, device=device)[:size]
    else:
        chosen = torch.randint(len(units), (size,), generator=generator, device=device)
    return units[chosen.cpu()]


def thin(units: Tensor, most: int) -> Tensor:
    """Return at most ``most`` of the units, evenly spread."""
    if len(units) <= most:
        return units
    return units[torch.linspace(0, len(units) - 1, most, dtype=torch.float64).round().long()]


def augmented(x: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Return new views of rows.

    The augmentation draws from torch's global random numbers, which the generator seeds.
    """
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with seeded(seed):
        made = augmentation(x)
    if not torch.is_tensor(made) or made.shape != x.shape:
        got = f"shape {tuple(made.shape)}" if torch.is_tensor(made) else type(made).__name__
        raise DemixError(
            f"An augmentation must return a tensor of the shape it is given, {tuple(x.shape)}, but "
            f"returned {got}."
        )
    return made.to(x)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global random numbers for a while, and restore the user's state after it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
