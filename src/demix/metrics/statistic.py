"""From samples that no fit has seen to a score: its value, its chance level and its interval.

Every score is a function of weighted means over such samples. The value is that of equal weights.
The bootstrap draws samples with replacement, which is another weighting, and costs a product of
matrices in place of a new fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from demix.metrics.score import Meaning, Score

_DRAWS = 200
# Weights that are held in memory at a time, whatever the number of samples.
_WEIGHTS = 4_000_000

Values = tuple[np.ndarray, np.ndarray]
"""A score under B weightings, ``(B,)``, and its parts, ``(B, p)``."""


class Statistic(NamedTuple):
    """A function of weighted means over held-out samples."""

    samples: int
    of_weights: Callable[[np.ndarray], Values]  # of weights (B, samples), whose rows sum to 1

    def unweighted(self) -> Values:
        """Return the value and its parts with all samples weighted equally."""
        values, parts = self.of_weights(np.full((1, self.samples), 1 / self.samples))
        return values[0], parts[0]

    def bootstrap(self, seed: int) -> Values:
        """Return values and parts for samples that are drawn with replacement."""
        drawn = [self.of_weights(weights) for weights in _weights(self.samples, seed)]
        values, parts = zip(*drawn, strict=True)
        return np.concatenate(values), np.concatenate(parts)

    def interval(self, seed: int) -> tuple[float, float]:
        """Return the ends of a 95 % interval of the value."""
        value = float(self.unweighted()[0])
        low, high = np.quantile(self.bootstrap(seed)[0], [0.025, 0.975])
        # A maximum over latents grows when samples are redrawn; the value itself stays inside.
        return min(float(low), value), max(float(high), value)


def halves(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the row numbers at random into those that fit and those that score."""
    order = np.random.default_rng(seed).permutation(samples)
    return order[: samples // 2], order[samples // 2 :]


def mean_of(parts: np.ndarray) -> Values:
    """Return parts ``(B, p)`` with their mean as the value."""
    return parts.mean(axis=1), parts


def scored(
    measure: Callable[[np.ndarray], Statistic],
    latents: np.ndarray,
    meaning: Meaning,
    *,
    seed: int,
    null: np.ndarray | None = None,
    assignment: np.ndarray | None = None,
) -> Score:
    """Return the score of what ``measure`` returns for the latents.

    Its chance level is measured on first use, on ``null``; by default on the latents with their
    rows shuffled.
    """

    def chance() -> Statistic:
        return measure(_shuffled(latents, seed) if null is None else null)

    return _score(measure(latents), chance, meaning, seed, assignment)


def scored_each(
    measure: Callable[[np.ndarray], Sequence[Statistic]],
    latents: np.ndarray,
    meanings: Sequence[Meaning],
    *,
    seed: int,
) -> list[Score]:
    """Return several scores of one measurement; chance is measured once for all of them."""
    null = cache(lambda: measure(_shuffled(latents, seed)))

    def chance(number: int) -> Callable[[], Statistic]:
        return lambda: null()[number]

    both = zip(measure(latents), meanings, strict=True)
    return [_score(one, chance(i), meaning, seed) for i, (one, meaning) in enumerate(both)]


def _score(
    statistic: Statistic,
    chance: Callable[[], Statistic],
    meaning: Meaning,
    seed: int,
    assignment: np.ndarray | None = None,
) -> Score:
    value, parts = statistic.unweighted()
    return Score(
        float(value),
        meaning,
        parts,
        baseline=lambda: float(chance().unweighted()[0]),
        interval=lambda: statistic.interval(seed),
        assignment=assignment,
    )


def _shuffled(latents: np.ndarray, seed: int) -> np.ndarray:
    return latents[np.random.default_rng([seed, 1]).permutation(len(latents))]


def _weights(samples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the weights ``(B, samples)`` of samples drawn with replacement, some at a time."""
    random = np.random.default_rng([seed, 2])
    at_once = min(_DRAWS, max(1, _WEIGHTS // samples))
    for start in range(0, _DRAWS, at_once):
        number = min(at_once, _DRAWS - start)
        drawn = random.integers(samples, size=(number, samples))
        drawn += samples * np.arange(number)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=number * samples)
        yield counts.reshape(number, samples) / samples


def units_of(x: np.ndarray) -> np.ndarray:
    """Return a power of 2 about as large as the range of each column; 1 for a constant one.

    Dividing by it is exact, and keeps squares of the smallest and largest numbers from being lost.
    """
    reach = x.max(axis=0).astype(np.float64) - x.min(axis=0)
    return np.asarray(np.ldexp(1.0, np.frexp(reach)[1]))


def unit_columns(x: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and of size about 1, for scores that ignore scale and shift.

    Columns that vary by rounding only are zeros: what they correlate with means nothing.
    """
    flat = np.ptp(x, axis=0) <= 8 * np.finfo(float).eps * np.abs(x).max(axis=0)
    return np.where(flat, 0.0, (x - x.mean(axis=0)) / units_of(x))


def over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0 where there is nothing to divide by."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.asarray(np.where(denominator > 0, numerator / safe, 0.0))


def r2_of(error: np.ndarray, target: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    r"""Return the :math:`R^2` ``(B, k)`` of predictions as a function of weights ``(B, N)``.

    ``error`` ``(N, k)`` is what the predictions miss of ``target`` ``(N, k)``.
    """
    centred = target - target.mean(axis=0)
    terms = np.hstack([np.square(error), centred, np.square(centred)])

    def r2(weights: np.ndarray) -> np.ndarray:
        missed, mean, square = np.split(weights @ terms, 3, axis=1)
        spread = square - np.square(mean)
        return np.where(spread > 0, 1 - over(missed, spread), 0.0)

    return r2
