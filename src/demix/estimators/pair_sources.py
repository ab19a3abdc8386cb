"""Where positive pairs of a user's data come from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.data import Data
from demix.estimators.sources import (
    PARTS,
    Augmentation,
    DrawnPairs,
    Source,
    augmented,
    connected_rows,
    three_parts,
    units_of,
)

# Time is cut into at most so many segments; pairs never reach from one into another.
_SEGMENTS = 20
# A held-out segment is cut into so many blocks, whose means are taken as independent.
_BLOCKS = 8


class LagPairs(Source[DrawnPairs]):
    """Rows in time order; the positive of a row comes ``low`` to ``high`` rows after it.

    Lags are drawn uniformly. Time is cut into segments, a ``share`` of which is held out.
    """

    def __init__(self, data: Data, low: int, high: int, *, share: float, seed: int) -> None:
        self.data, self.low, self.high = data, low, high
        count = min(_SEGMENTS, len(data) // (high + 2))
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
        self._block = max(4 * high, int(np.diff(edges).max()) // _BLOCKS, 1)

    def lags(self) -> tuple[int, int]:
        """Return the smallest and the largest lag."""
        return self.low, self.high

    def _batch(self, units: Tensor, generator: torch.Generator) -> DrawnPairs:
        segment = torch.searchsorted(self._ends, units, right=True)
        most = torch.clamp(self._ends[segment] - 1 - units, max=self.high)
        chance = torch.rand(len(units), generator=generator, device=generator.device).cpu()
        lag = self.low + (chance * (most - self.low + 1)).long().clamp_max(most - self.low)
        return _pairs_at(self.data, units, units + lag, generator.device)

    def _blocks(self, units: Tensor) -> Tensor:
        return units // self._block


class GivenPairs(Source[DrawnPairs]):
    """Pairs ``(P, 2)`` of row numbers; rows that pairs connect are held out together.

    Anchors and positives change places at random.
    """

    def __init__(self, data: Data, pairs: Tensor, *, share: float, seed: int) -> None:
        self.data, self.pairs = data, pairs
        first, second = pairs.T.numpy()
        component = connected_rows(pairs, len(data))[first]
        random = np.random.default_rng(seed)
        _, self._component, sizes = np.unique(component, return_inverse=True, return_counts=True)
        if len(sizes) < 3 or sizes.max() > (1 - share) * len(pairs):
            # Nearly all rows are connected: divide the rows, and drop pairs between two parts.
            side = three_parts(len(data), share, random)
            place = np.where(side[first] == side[second], side[first], -1)
            self._component = first
        else:
            place = three_parts(len(sizes), share, random)[self._component]
        few = (
            f"Of {len(pairs)} pairs none is left for {{part}}, because they are all connected or "
            "too few; give more pairs, of more different rows."
        )
        self.units = units_of(place, few=few)

    def _batch(self, units: Tensor, generator: torch.Generator) -> DrawnPairs:
        chosen = self.pairs[units]
        swap = torch.rand(len(units), generator=generator, device=generator.device).cpu() < 0.5
        first, second = torch.where(swap[:, None], chosen.flip(1), chosen).T
        return _pairs_at(self.data, first, second, generator.device)

    def _blocks(self, units: Tensor) -> Tensor:
        return torch.from_numpy(self._component[units.numpy()])


class AugmentedPairs(Source[DrawnPairs]):
    """Two views of one row, each made by a callable."""

    def __init__(self, data: Data, augmentation: Augmentation, *, share: float, seed: int) -> None:
        self.data, self.augmentation = data, augmentation
        self.units = units_of(three_parts(len(data), share, np.random.default_rng(seed)))

    def _batch(self, units: Tensor, generator: torch.Generator) -> DrawnPairs:
        plain = self.data.take(units).to(generator.device)
        first = augmented(plain, self.augmentation, generator)
        return DrawnPairs(first, augmented(plain, self.augmentation, generator))


def _pairs_at(data: Data, first: Tensor, second: Tensor, device: torch.device) -> DrawnPairs:
    """Return pairs of rows, read together."""
    both = data.take(torch.cat([first, second])).to(device)
    return DrawnPairs(both[: len(first)], both[len(first) :])
