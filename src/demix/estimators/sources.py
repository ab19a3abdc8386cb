"""Where positive pairs and labelled samples of a user's data come from, split to hold some out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from demix.errors import DemixError

# Time is split into so many blocks at most; pairs never leave a block.
_BLOCKS = 20


class Rows(Protocol):
    """Data that can be taken by row numbers."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, index: Tensor) -> Tensor:
        """Return rows ``(B, ...)`` in float32."""


class Views(NamedTuple):
    """Two views of ``N`` samples: ``x_tilde[i]`` is positive for ``x[i]``."""

    x: Tensor
    x_tilde: Tensor


class Examples(NamedTuple):
    """Samples ``x`` and a label for each."""

    x: Tensor
    labels: Tensor


class PairSource(ABC):
    """Positive pairs of rows, a part of them held out."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @abstractmethod
    def draw(
        self, size: int, *, held_out: bool, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the row numbers ``(size,)`` of anchors and of their positives."""

    def sample(self, size: int, *, generator: torch.Generator) -> Views:
        """Draw pairs to train on."""
        return self._views(*self.draw(size, held_out=False, generator=generator))

    def held_out(self, size: int, *, generator: torch.Generator) -> Views:
        """Draw pairs that training never sees."""
        return self._views(*self.draw(size, held_out=True, generator=generator))

    def _views(self, anchors: Tensor, positives: Tensor) -> Views:
        both = self.rows.take(torch.cat([anchors, positives]))
        return Views(*both.split(len(anchors)))


class LagPairs(PairSource):
    """Rows in time order; a row is positive for the row ``lag`` steps before it.

    Time is cut into blocks of consecutive rows, of which every fifth or so is held out; no pair
    reaches from one block into another.

    Parameters
    ----------
    rows : Rows
        In time order.
    low, high : int
        The lags, drawn uniformly from ``low..high``.
    share : float
        Share of the blocks that is held out.
    seed : int
        Which blocks.
    """

    def __init__(self, rows: Rows, low: int, high: int, *, share: float, seed: int) -> None:
        super().__init__(rows)
        if not 1 <= low <= high:
            raise DemixError(
                f"Lags must be whole numbers with 1 <= low <= high, but got {low}:{high}."
            )
        self.low, self.high = low, high
        # Blocks that hold some pairs of every lag, as many of them as there can be.
        count = min(_BLOCKS, len(rows) // (4 * high + 2))
        if count < 2:
            raise DemixError(
                f"Lags up to {high} with some time held out take at least {8 * high + 4} rows, but "
                f"there are {len(rows)}; use smaller lags or more rows."
            )
        edges = np.linspace(0, len(rows), count + 1).astype(int)
        held = np.random.default_rng(seed).permutation(count)[: max(1, round(share * count))]
        chosen = np.isin(np.arange(count), held)
        self._starts = torch.as_tensor(edges[:-1])
        self._ends = torch.as_tensor(edges[1:])
        self._blocks = {
            flag: torch.as_tensor(np.flatnonzero(chosen == flag)) for flag in (False, True)
        }

    def draw(
        self, size: int, *, held_out: bool, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Draw a block by its length, a lag, and an anchor with room for the lag behind it."""
        blocks = self._blocks[held_out]
        room = (self._ends - self._starts)[blocks].double()
        block = blocks[torch.multinomial(room, size, replacement=True, generator=generator)]
        lag = torch.randint(self.low, self.high + 1, (size,), generator=generator)
        space = self._ends[block] - self._starts[block] - lag
        where = (torch.rand(size, generator=generator, dtype=torch.float64) * space).long()
        anchors = self._starts[block] + where
        return anchors, anchors + lag


class GivenPairs(PairSource):
    """Pairs of row numbers; rows that hang together by pairs are held out together.

    Parameters
    ----------
    rows : Rows
        The data.
    pairs : Tensor (P, 2)
        Row numbers of anchors and positives.
    share : float
        Share of the pairs that is held out.
    seed : int
        Which ones.
    """

    def __init__(self, rows: Rows, pairs: Tensor, *, share: float, seed: int) -> None:
        super().__init__(rows)
        if len(pairs) < 4:
            raise DemixError(
                f"Training and holding out take at least 4 pairs, but got {len(pairs)}."
            )
        first, second = pairs.T.numpy()
        links = coo_array((np.ones(len(pairs)), (first, second)), shape=(len(rows),) * 2)
        _, part = connected_components(links, directed=False)
        random = np.random.default_rng(seed)
        order = random.permutation(part.max() + 1)
        size = np.bincount(part[first], minlength=len(order))[order]
        held = order[np.cumsum(size) <= max(share * len(pairs), size.min())]
        inside = np.isin(part[first], held)
        if not inside.any() or inside.all():
            # All hang together: split the rows, and let go of pairs between both sides.
            side = random.random(len(rows)) < share
            inside = side[first] & side[second]
            outside = ~side[first] & ~side[second]
        else:
            outside = ~inside
        if not inside.any() or not outside.any():
            raise DemixError(
                "No part of the pairs can be held out, because all rows hang together; give more "
                "pairs, or pairs of more different rows."
            )
        self._pairs = {False: pairs[torch.as_tensor(outside)], True: pairs[torch.as_tensor(inside)]}

    def draw(
        self, size: int, *, held_out: bool, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Draw pairs, in either direction."""
        pairs = self._pairs[held_out]
        chosen = pairs[torch.randint(len(pairs), (size,), generator=generator)]
        swap = torch.rand(size, generator=generator) < 0.5
        chosen = torch.where(swap[:, None], chosen.flip(1), chosen)
        return chosen[:, 0], chosen[:, 1]


class AugmentedPairs(PairSource):
    """Two views of one row, each made by a callable.

    Parameters
    ----------
    rows : Rows
        The data.
    augment : callable
        ``augment(x)`` returns new views of rows ``(B, ...)``; it draws from torch's generator.
    share : float
        Share of the rows that is held out.
    seed : int
        Which ones.
    """

    def __init__(
        self, rows: Rows, augment: Callable[[Tensor], Tensor], *, share: float, seed: int
    ) -> None:
        super().__init__(rows)
        self.augment = augment
        order = torch.as_tensor(np.random.default_rng(seed).permutation(len(rows)))
        held = max(2, round(share * len(rows)))
        if len(rows) - held < 2:
            raise DemixError(
                f"Holding rows out takes at least 4 of them, but there are {len(rows)}."
            )
        self._parts = {True: order[:held], False: order[held:]}

    def draw(
        self, size: int, *, held_out: bool, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Draw rows; each is its own positive."""
        part = self._parts[held_out]
        chosen = part[torch.randint(len(part), (size,), generator=generator)]
        return chosen, chosen

    def _views(self, anchors: Tensor, positives: Tensor) -> Views:
        plain = super()._views(anchors, positives)
        return Views(_like(plain.x, self.augment), _like(plain.x_tilde, self.augment))


def _like(x: Tensor, augment: Callable[[Tensor], Tensor]) -> Tensor:
    made = augment(x)
    if not torch.is_tensor(made) or made.shape != x.shape:
        got = tuple(made.shape) if torch.is_tensor(made) else type(made).__name__
        raise DemixError(
            f"An augmentation must return a tensor of the shape it is given, {tuple(x.shape)}, but "
            f"returned {got}."
        )
    return made.to(x)


class LabelledRows:
    """Rows with class labels; of every class a part is held out.

    Parameters
    ----------
    rows : Rows
        The data.
    labels : Tensor (N,) of int64
        The class of each row.
    share : float
        Share of each class that is held out; a class with one sample is only trained on.
    seed : int
        Which rows.
    """

    def __init__(self, rows: Rows, labels: Tensor, *, share: float, seed: int) -> None:
        self.rows, self.labels = rows, labels
        random = np.random.default_rng(seed)
        held = np.zeros(len(labels), dtype=bool)
        classes = labels.numpy()
        for label in np.unique(classes):
            members = random.permutation(np.flatnonzero(classes == label))
            held[members[: min(len(members) - 1, max(1, round(share * len(members))))]] = True
        if not held.any():
            raise DemixError(
                "Every class has a single sample, so that none can be held out; give more samples."
            )
        self._parts = {
            flag: torch.as_tensor(np.flatnonzero(held == flag)) for flag in (False, True)
        }

    def sample(self, size: int, *, generator: torch.Generator) -> Examples:
        """Draw samples to train on."""
        return self._examples(size, False, generator)

    def held_out(self, size: int, *, generator: torch.Generator) -> Examples:
        """Draw samples that training never sees."""
        return self._examples(size, True, generator)

    def _examples(self, size: int, held_out: bool, generator: torch.Generator) -> Examples:
        part = self._parts[held_out]
        chosen = part[torch.randint(len(part), (size,), generator=generator)]
        return Examples(self.rows.take(chosen), self.labels[chosen])


class InstanceRows:
    """Rows that are their own labels, seen through a callable that changes them a little.

    What is held out are views: a row of the table exists for every sample, so that no sample can
    be. Held-out views come from a generator of their own.

    Parameters
    ----------
    rows : Rows
        The data.
    augment : callable
        ``augment(x)`` returns new views of rows ``(B, ...)``.
    """

    def __init__(self, rows: Rows, augment: Callable[[Tensor], Tensor]) -> None:
        self.rows, self.augment = rows, augment

    def sample(self, size: int, *, generator: torch.Generator) -> Examples:
        """Draw views and the numbers of their rows."""
        chosen = torch.randint(len(self.rows), (size,), generator=generator)
        return Examples(_like(self.rows.take(chosen), self.augment), chosen)

    held_out = sample
