"""Where batches come from: rows are divided into parts for training, validation and test."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Generator, Tensor

from demix._support.errors import DemixError, shortened
from demix.data.data import Data
from demix.encoders.encoder import Noise

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
Augmentation = Callable[[Tensor], Tensor]
_SEGMENTS = 20  # of time at most; pairs never reach from one into another
_BLOCKS = 8  # of a held-out segment, whose means are taken as independent


class DrawnPairs(NamedTuple):
    """``B`` positive pairs of observations: ``x_tilde[i]`` is positive for ``x[i]``."""

    x: Tensor
    x_tilde: Tensor

    def targets(self) -> Tensor:
        """Return which of the keys, all positives, is each sample's ``(B,)``."""
        return torch.arange(len(self.x))

    def partners(self) -> tuple[Tensor, Tensor]:
        """Return observations that share what is looked for, one by one."""
        return self.x, self.x_tilde

    def noisy(self, noise: Noise, generator: Generator) -> DrawnPairs:
        """Return the same with noise added to the observations."""
        return DrawnPairs(*(side + noise(side, generator) for side in self))


class DrawnLabels(NamedTuple):
    """Samples ``x`` ``(B, ...)`` and a label ``(B,)`` for each."""

    x: Tensor
    labels: Tensor

    def targets(self) -> Tensor:
        """Return which of the classes is each sample's ``(B,)``."""
        return self.labels

    def partners(self) -> tuple[Tensor, Tensor]:
        """Return observations that share what is looked for, one by one."""
        labels, order = self.labels.sort(stable=True)
        same = labels[:-1] == labels[1:]
        return self.x[order[:-1][same]], self.x[order[1:][same]]

    def noisy(self, noise: Noise, generator: Generator) -> DrawnLabels:
        """Return the same with noise added to the observations."""
        return DrawnLabels(self.x + noise(self.x, generator), self.labels)


Batch = TypeVar("Batch", DrawnPairs, DrawnLabels)


class Source(ABC, Generic[Batch]):
    """Batches of rows of ``data``; its units (rows or pairs) are divided into `PARTS`."""

    data: Data
    units: Mapping[Part, Tensor]
    alike = True
    """Whether partners differ in nothing but noise, as two rows of a class do not."""

    def __len__(self) -> int:
        """Return how many units are trained on."""
        return len(self.units["train"])

    def sample(self, size: int, *, generator: Generator) -> Batch:
        """Draw a batch to train on, to the generator's device."""
        return self._batch(pick(self.units["train"], size, generator), generator)

    def partners(self, part: Part, most: int, *, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw observations of a part that share what is looked for, one by one."""
        units = self.units[part]
        return self._batch(pick(units, min(most, len(units)), generator), generator).partners()

    def held_out(self, part: Part, most: int, *, generator: Generator) -> tuple[Batch, Tensor]:
        """Return at most ``most`` samples of a part, and the independent block ``(B,)`` of each."""
        units = thin(self.units[part], most)
        return self._batch(units, generator), self._blocks(units)

    def guess(self) -> Tensor | None:
        """Return the log-probability ``(K,)`` of each class without a look at the sample."""
        return None  # the targets of a batch are the classes, each as probable as another

    def lags(self) -> tuple[int, int] | None:
        """Return the smallest and the largest lag of positives, if rows are in time order."""
        return None

    @abstractmethod
    def _batch(self, units: Tensor, generator: Generator) -> Batch:
        """Return a sample for each unit."""

    def _blocks(self, units: Tensor) -> Tensor:
        """Return the block of each unit."""
        return units


class LagPairs(Source[DrawnPairs]):
    """Rows in time order; the positive comes ``low`` to ``high`` rows after, drawn uniformly."""

    def __init__(self, data: Data, low: int, high: int, *, share: float, seed: int) -> None:
        self.data, self.low, self.high = data.by_number(), low, high
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

    def _batch(self, units: Tensor, generator: Generator) -> DrawnPairs:
        segment = torch.searchsorted(self._ends, units, right=True)
        most = torch.clamp(self._ends[segment] - 1 - units, max=self.high)
        chance = torch.rand(len(units), generator=generator, device=generator.device).cpu()
        lag = self.low + (chance * (most - self.low + 1)).long().clamp_max(most - self.low)
        return _pairs_at(self.data, units, units + lag, generator.device)

    def _blocks(self, units: Tensor) -> Tensor:
        return units // self._block


class GivenPairs(Source[DrawnPairs]):
    """Pairs ``(P, 2)`` of row numbers, either way round; connected rows are held out together."""

    def __init__(self, data: Data, pairs: Tensor, *, share: float, seed: int) -> None:
        self.data, self.pairs = data.by_number(), pairs
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
        self.units = units_of(
            place,
            few=f"Of {len(pairs)} pairs none is left for {{part}}, because they are all connected "
            "or too few; give more pairs, of more different rows.",
        )

    def _batch(self, units: Tensor, generator: Generator) -> DrawnPairs:
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

    def _batch(self, units: Tensor, generator: Generator) -> DrawnPairs:
        plain = self.data.take(units).to(generator.device)
        return DrawnPairs(*(augmented(plain, self.augmentation, generator) for _ in range(2)))


class LabelledRows(Source[DrawnLabels]):
    """Rows with labels ``(N,)``; a share of every class is held out, but not its only sample."""

    alike = False

    def __init__(self, data: Data, labels: Tensor, count: int, *, share: float, seed: int) -> None:
        self.data, self.labels, self.classes = data.by_number(), labels, count
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

    def _batch(self, units: Tensor, generator: Generator) -> DrawnLabels:
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

    def partners(self, part: Part, most: int, *, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw two views each of some rows."""
        units = pick(self.units[part], min(most, len(self.data)), generator)
        first, second = (self._batch(units, generator).x for _ in range(2))
        return first, second

    def guess(self) -> Tensor:
        """Return the same for all rows."""
        return torch.full((len(self.data),), -math.log(len(self.data)), dtype=torch.float64)

    def _batch(self, units: Tensor, generator: Generator) -> DrawnLabels:
        plain = self.data.take(units).to(generator.device)
        return DrawnLabels(augmented(plain, self.augmentation, generator), units.to(plain.device))


def _pairs_at(data: Data, first: Tensor, second: Tensor, device: torch.device) -> DrawnPairs:
    both = data.take(torch.cat([first, second])).to(device)
    return DrawnPairs(both[: len(first)], both[len(first) :])


def three_parts(count: int, share: float, random: np.random.Generator) -> np.ndarray:
    """Return the part in `PARTS` of each unit; half of a share validates, the other half tests."""
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
    units = {p: torch.from_numpy(np.flatnonzero(place == i)) for i, p in enumerate(PARTS)}
    empty = [part for part in PARTS if len(units[part]) == 0]
    if few is not None and empty:
        raise DemixError(few.format(part=empty[0]))
    return units


def connected_rows(pairs: Tensor, rows: int) -> np.ndarray:
    """Return for each row ``(N,)`` the number of the component that pairs ``(P, 2)`` join it to."""
    first, second = pairs.T.numpy()
    links = coo_array((np.ones(len(pairs)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(links, directed=False)[1])


def pick(units: Tensor, size: int, generator: Generator) -> Tensor:
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


def augmented(x: Tensor, augmentation: Augmentation, generator: Generator) -> Tensor:
    """Return new views of rows, drawn from torch's global numbers, which the generator seeds."""
    if not callable(augmentation):
        raise DemixError(f"An augmentation is a function, but got {shortened(repr(augmentation))}.")
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
