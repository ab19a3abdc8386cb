"""Where positive pairs of a user's data come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.data import Data
from demix.estimators.seeding import seeded
from demix.estimators.split import PARTS, Part, hanging_together, pick, thin, three_parts

# Time is cut into so many blocks at most; pairs never reach from one into another.
_BLOCKS = 20
# Into so many stretches a held-out block is cut, whose means are taken as independent.
_STRETCHES = 8

Augmentation = Callable[[Tensor], Tensor]


class Views(NamedTuple):
    """Two views of ``B`` samples: ``x_tilde[i]`` is positive for ``x[i]``."""

    x: Tensor
    x_tilde: Tensor

    def shuffled(self, order: Tensor) -> Views:
        """Return the same anchors with the positives of others."""
        return Views(self.x, self.x_tilde[order])

    def taken(self, index: slice | Tensor) -> Views:
        """Return some of the pairs."""
        return Views(self.x[index], self.x_tilde[index])


class PairSource(ABC):
    """Positive pairs of rows of ``data``; units (rows or pairs) are divided into parts."""

    data: Data
    units: dict[Part, Tensor]

    def __len__(self) -> int:
        """Return how many units are trained on."""
        return len(self.units["train"])

    def sample(self, size: int, *, generator: torch.Generator) -> Views:
        """Draw pairs to train on, to the generator's device."""
        return self._views(pick(self.units["train"], size, generator), generator)

    def held_out(
        self, part: Part, most: int, *, generator: torch.Generator
    ) -> tuple[Views, Tensor]:
        """Return at most ``most`` pairs of a part, and the group ``(B,)`` of each.

        Pairs of different groups may be taken as independent.
        """
        units = thin(self.units[part], most)
        return self._views(units, generator), self._groups(units)

    @abstractmethod
    def _views(self, units: Tensor, generator: torch.Generator) -> Views:
        """Return a pair for each unit."""

    @abstractmethod
    def _groups(self, units: Tensor) -> Tensor:
        """Return the group of each unit."""

    def _taken(self, first: Tensor, second: Tensor, device: torch.device) -> Views:
        both = self.data.take(torch.cat([first, second])).to(device)
        return Views(both[: len(first)], both[len(first) :])


class LagPairs(PairSource):
    """Rows in time order; the positive of a row comes ``low`` to ``high`` rows after it.

    Parameters
    ----------
    data : Data
        In time order. It is cut into blocks, some of which are held out as a whole.
    low, high : int
        The lags, drawn uniformly.
    share : float
        Share of the blocks that is held out.
    seed : int
        Which blocks.
    """

    def __init__(self, data: Data, low: int, high: int, *, share: float, seed: int) -> None:
        self.data, self.low, self.high = data, low, high
        count = min(_BLOCKS, len(data) // (high + 2))
        if count < 3:
            raise DemixError(
                f"Lags up to {high} with time held out take at least {3 * (high + 2)} rows, but "
                f"{data.source} has n_samples={len(data)}; use smaller lags or more rows."
            )
        edges = np.linspace(0, len(data), count + 1).astype(np.int64)
        place = three_parts(count, share, np.random.default_rng(seed))
        self._ends = torch.from_numpy(edges[1:])
        anchors = [torch.arange(a, b - low) for a, b in pairwise(edges)]
        self.units = {
            part: torch.cat([a for a, p in zip(anchors, place, strict=True) if p == number])
            for number, part in enumerate(PARTS)
        }
        self._stretch = max(4 * high, int(np.diff(edges).max()) // _STRETCHES, 1)

    def _views(self, units: Tensor, generator: torch.Generator) -> Views:
        block = torch.searchsorted(self._ends, units, right=True)
        most = torch.clamp(self._ends[block] - 1 - units, max=self.high)
        chance = torch.rand(len(units), generator=generator, device=generator.device).cpu()
        lag = self.low + (chance * (most - self.low + 1)).long().clamp_max(most - self.low)
        return self._taken(units, units + lag, generator.device)

    def _groups(self, units: Tensor) -> Tensor:
        return units // self._stretch


class GivenPairs(PairSource):
    """Pairs of row numbers; rows that hang together by pairs are held out together.

    Parameters
    ----------
    data : Data
        The rows.
    pairs : Tensor (P, 2) of int64
        Row numbers of anchors and positives, which change places at random.
    share : float
        Share of the pairs that is held out.
    seed : int
        Which ones.
    """

    def __init__(self, data: Data, pairs: Tensor, *, share: float, seed: int) -> None:
        self.data, self.pairs = data, pairs
        first, second = pairs.T.numpy()
        component = hanging_together(pairs, len(data))
        random = np.random.default_rng(seed)
        self._group, place = self._parted(component[first], share, random)
        if place is None:
            # All hang together: divide the rows, and let go of pairs between two sides.
            side = three_parts(len(data), share, random)
            place = np.where(side[first] == side[second], side[first], -1)
            self._group = first
        self.units = {
            part: torch.from_numpy(np.flatnonzero(place == number))
            for number, part in enumerate(PARTS)
        }
        empty = [part for part, units in self.units.items() if len(units) == 0]
        if empty:
            raise DemixError(
                f"Of {len(pairs)} pairs none is left to {empty[0]} with, because they all hang "
                "together or are too few; give more pairs, of more different rows."
            )

    @staticmethod
    def _parted(
        component: np.ndarray, share: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Divide the components, unless one of them is most of everything."""
        _, group, sizes = np.unique(component, return_inverse=True, return_counts=True)
        if len(sizes) < 3 or sizes.max() > (1 - share) * len(component):
            return group, None
        return group, three_parts(len(sizes), share, random)[group]

    def _views(self, units: Tensor, generator: torch.Generator) -> Views:
        chosen = self.pairs[units]
        swap = torch.rand(len(units), generator=generator, device=generator.device).cpu() < 0.5
        first, second = torch.where(swap[:, None], chosen.flip(1), chosen).T
        return self._taken(first, second, generator.device)

    def _groups(self, units: Tensor) -> Tensor:
        return torch.from_numpy(self._group[units.numpy()])


class AugmentedPairs(PairSource):
    """Two views of one row, each made by a callable.

    Parameters
    ----------
    data : Data
        The rows.
    augmentation : callable
        ``augmentation(x)`` returns new views of rows ``(B, ...)``; it draws from torch's own
        random numbers, which are seeded for each call.
    share : float
        Share of the rows that is held out.
    seed : int
        Which ones.
    """

    def __init__(self, data: Data, augmentation: Augmentation, *, share: float, seed: int) -> None:
        self.data, self.augmentation = data, augmentation
        place = three_parts(len(data), share, np.random.default_rng(seed))
        self.units = {
            part: torch.from_numpy(np.flatnonzero(place == number))
            for number, part in enumerate(PARTS)
        }

    def _views(self, units: Tensor, generator: torch.Generator) -> Views:
        plain = self.data.take(units).to(generator.device)
        return Views(
            augmented(plain, self.augmentation, generator),
            augmented(plain, self.augmentation, generator),
        )

    def _groups(self, units: Tensor) -> Tensor:
        return units


def augmented(x: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Return new views of rows, the same ones for the same state of the generator."""
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
