"""Rows that depend on each other: how they are split, redrawn and exchanged.

Rows of one recording are alike: if one of them fits and its neighbour scores, or if they are
redrawn or shuffled one by one, scores look too good and intervals too narrow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import norm

from demix._support.errors import DemixError, demix_errors, warn
from demix._support.validation import as_numpy, check_seed
from demix.data.csv_files import check_words

Blocks = Any
"""``None``, the length of blocks in time order, ``"auto"``, or the block of each row ``(N,)``."""

_DRAWS = 200
_WEIGHTS = 4_000_000  # weights that are held in memory at a time, whatever the number of samples
_FEWEST = 4  # blocks
_COLUMNS = 64
_TIMES = 3  # autocorrelations up to three correlation times nearly vanish
_PARTS = 9  # with "auto", half of the rows less a gap hold at least four blocks
_LEVEL, _VISIBLE = 0.005, 0.3  # less than 1 % of independent rows are taken for alike


@dataclass(frozen=True, eq=False)
class Sampling:
    """How rows are split, redrawn and exchanged."""

    width: int  # how many latents there are
    factors: np.ndarray  # (N, n), what they are scored against
    seed: int  # of everything that is drawn
    members: np.ndarray | None = None  # the block of each row; by default each is its own
    length: int = 0  # of blocks in time order, and of the gap between parts; 0 for no order
    times: float = 1.0  # how many rows are worth an independent one

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def effective(self) -> float:
        """How many independent rows the rows are worth."""
        return len(self) / self.times

    def halves(self) -> list[np.ndarray]:
        """Return the numbers of the rows that fit and of those that score."""
        return self.parts([0.5], self.seed)

    def parts(self, cuts: Sequence[float], seed: Any) -> list[np.ndarray]:
        """Split row numbers at shares of all rows, ``cuts``: whole blocks, or rows, at random."""
        # Blocks in time order make contiguous parts with a gap of one block between them.
        rows, random = len(self), np.random.default_rng(seed)
        ends = [int(cut * rows) for cut in cuts]
        if self.members is None:
            return np.split(random.permutation(rows), ends)
        if self.length:
            before = self.length // 2
            starts = [0, *(end - before + self.length for end in ends)]
            stops = [*(end - before for end in ends), rows]
            return [np.arange(*both) for both in zip(starts, stops, strict=True)]
        sizes = np.bincount(self.members)
        order = random.permutation(len(sizes))
        middles = np.cumsum(sizes[order]) - sizes[order] / 2
        part_of = np.empty(len(sizes), dtype=int)
        part_of[order] = np.searchsorted(ends, middles)
        return [np.flatnonzero(part_of[self.members] == part) for part in range(len(ends) + 1)]

    def weights(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yield weights ``(B, len(rows))`` of rows whose blocks are drawn with replacement."""
        random = np.random.default_rng([self.seed, 2])
        own = np.arange(len(rows)) if self.members is None else self.members[rows]
        kinds, place = np.unique(own, return_inverse=True)
        blocks = len(kinds)
        at_once = min(_DRAWS, max(1, _WEIGHTS // len(rows)))
        for start in range(0, _DRAWS, at_once):
            number = min(at_once, _DRAWS - start)
            drawn = random.integers(blocks, size=(number, blocks))
            drawn += blocks * np.arange(number)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=number * blocks).reshape(number, blocks)
            some = counts.take(place, axis=1)
            yield some / some.sum(axis=1, keepdims=True)

    def orders(self, number: int, *, folded: bool = True) -> Iterator[np.ndarray]:
        """Yield orders ``(N,)`` of the latents that untie them from factors, not from each other.

        Rows without blocks are shuffled, others sorted by block and shifted in a circle. ``folded``
        rows in time order are first followed by themselves in reverse, so that no shift jumps.
        """
        if self.members is None:
            random = np.random.default_rng([self.seed, 1])
            yield from (random.permutation(len(self)) for _ in range(number))
            return
        line = np.argsort(self.members, kind="stable")
        circle = np.concatenate([line, line[::-1]]) if folded and self.length else line
        for step in np.linspace(0, len(circle), number + 2)[1:-1].round().astype(int):
            order = np.empty_like(line)
            order[line] = np.roll(circle, step)[: len(line)]
            yield order

    def only(self, rows: np.ndarray) -> Self:
        """Return the sampling of some of the rows."""
        members = None if self.members is None else self.members[rows]
        return replace(self, factors=self.factors[rows], members=members)


def exchangeable(rows: int, seed: int) -> Sampling:
    """Return the sampling of rows that do not depend on each other."""
    return Sampling(0, np.empty((rows, 0)), seed)


def sampling_of(latents: np.ndarray, factors: np.ndarray, blocks: Blocks, seed: int) -> Sampling:
    """Return how rows are sampled; raise DemixError if blocks are none, too long or too few."""
    rows, width = latents.shape
    check_seed(seed)
    if blocks is None:
        return Sampling(width, factors, seed)
    if isinstance(blocks, str) or (isinstance(blocks, Integral) and not isinstance(blocks, bool)):
        # The largest 1 + 2 sum_k rho_z(k) rho_s(k), the variance of a correlation (Bartlett 1935).
        z, s = _autocorrelation(latents), _autocorrelation(factors)
        lags = min(len(z), len(s))
        times = float(1 + 2 * (z[:lags].T @ s[:lags]).max(initial=0.0))
        if blocks == "auto":
            blocks = int(np.clip(round(_TIMES * times), 1, max(1, rows // _PARTS)))
        if isinstance(blocks, str) or not 1 <= blocks <= rows // _FEWEST:
            raise DemixError(
                f'blocks must be "auto", the block of each row, or a length from 1 to '
                f"{rows // _FEWEST}, of which {rows} rows hold {_FEWEST}, but got {blocks!r}."
            )
        length = int(blocks)
        return Sampling(width, factors, seed, np.arange(rows) // length, length, times)
    members = _numbered(blocks, rows)
    return Sampling(width, factors, seed, members, 0, _likeness(latents, factors, members))


def blocks_of(sampling: Sampling, rows: np.ndarray) -> Blocks:
    """Return the blocks of some rows, in their order."""
    if sampling.members is None:
        return None
    if sampling.length:
        return max(1, sampling.length * len(rows) // len(sampling))
    return sampling.members[rows]


def warn_if_alike(latents: np.ndarray, sampling: Sampling) -> None:
    """Warn if neighbouring rows of both latents and factors are alike, but are in no blocks."""
    if sampling.members is not None:
        return
    largest = []
    for columns in (latents, sampling.factors):
        centred = _centred(columns)
        square = np.square(centred).sum(axis=0)
        product = (centred[1:] * centred[:-1]).sum(axis=0)
        largest.append(float((product / np.where(square > 0, square, 1.0)).max(initial=0.0)))
        chance = norm.isf(_LEVEL / centred.shape[1]) / len(centred) ** 0.5
        if largest[-1] < max(_VISIBLE, chance):
            return
    warn(
        f"Neighbouring rows are alike (autocorrelation {min(largest):.2f}), but scores, chance "
        'levels and intervals take rows as independent; pass blocks="auto" (--blocks auto) if '
        "rows are in time order, or the recording or subject of each row."
    )


def _numbered(blocks: Any, rows: int) -> np.ndarray:
    """Return the number of the block of each row."""
    with demix_errors("Expected a block for each row", "give numbers, or text"):
        labels = np.asarray(as_numpy(blocks, "blocks"))
    if labels.dtype.kind in "OU":
        check_words(blocks, "a block")
        labels = labels.astype(str)
    if labels.shape != (rows,) or labels.dtype.kind not in "biufU":
        raise DemixError(
            f'blocks must be "auto", a length, or a number or a text for each of {rows} rows, but '
            f"got {labels.dtype} of shape {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DemixError("Every row must be in a block, but some blocks are NaN or infinite.")
    kinds, members = np.unique(labels, return_inverse=True)
    if len(kinds) < _FEWEST:
        raise DemixError(
            f"Holding blocks out needs at least {_FEWEST} of them, but got {len(kinds)}; cut long "
            "ones into several."
        )
    return members


def _centred(columns: np.ndarray) -> np.ndarray:
    """Return columns of mean 0; of very many, some show how much and how long they are alike."""
    some = columns[:, :: -(-columns.shape[1] // _COLUMNS)].astype(float)
    return np.asarray(some - some.mean(axis=0))


def _autocorrelation(columns: np.ndarray) -> np.ndarray:
    """Return autocorrelations ``(K, d)`` from lag 1 on, each up to where it is first negative."""
    rows = len(columns)
    size = next_fast_len(2 * rows, real=True)
    found = []
    for column in _centred(columns).T:
        products = irfft(np.square(np.abs(rfft(column, size))), size)[:rows]
        positive = products[1:] > 1e-12 * products[0]
        found.append(products[1 : 1 + int(np.append(positive, False).argmin())] / products[0])
    lags = max(map(len, found))
    return np.stack([np.pad(each, (0, lags - len(each))) for each in found], axis=1)


def _likeness(latents: np.ndarray, factors: np.ndarray, members: np.ndarray) -> float:
    """Return how many rows are worth an independent one, if those of a block are alike."""
    # By as much the variance of a correlation grows with that of rows within blocks (Moulton 1990).
    sizes = np.bincount(members)
    pairs = np.square(sizes).sum() - len(members)

    def within(columns: np.ndarray) -> float:
        centred = _centred(columns)
        square = np.square(centred).sum(axis=0)
        sums = np.zeros((len(sizes), centred.shape[1]))
        np.add.at(sums, members, centred)
        together = (np.square(sums).sum(axis=0) - square) / max(pairs, 1)
        return float((together / np.where(square > 0, square / len(members), 1.0)).max())

    alike = max(within(latents), 0.0) * max(within(factors), 0.0)
    return 1 + pairs / len(members) * alike
