"""From samples that score to a score: its value, its chance level and its interval.

Every score here is a function of weighted means over samples that no fit has seen. The value is
that of equal weights; the bootstrap draws samples with replacement, which is another weighting, and
costs a product of matrices in place of a new fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from demix.metrics.score import Score

_DRAWS = 200
# So many weights are held in memory at a time, whatever the number of samples.
_WEIGHTS = 4_000_000

Parts = tuple[np.ndarray, np.ndarray]
"""Values ``(B,)`` of a score under B weightings, and its parts ``(B, p)``."""


class Held(NamedTuple):
    """Samples that score.

    Attributes
    ----------
    rows : int
        How many there are.
    of_weights : callable
        From weights ``(B, rows)``, each row of which sums to 1, to :data:`Parts`.
    """

    rows: int
    of_weights: Callable[[np.ndarray], Parts]

    def whole(self) -> Parts:
        """Return the value and its parts with all samples weighted equally."""
        values, parts = self.of_weights(np.full((1, self.rows), 1 / self.rows))
        return values[0], parts[0]


def halves(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the row numbers at random into those that fit and those that score."""
    order = np.random.default_rng(seed).permutation(samples)
    return order[: samples // 2], order[samples // 2 :]


def shuffled(latents: np.ndarray, seed: int) -> np.ndarray:
    """Return the latents with their rows shuffled: as they are, but of other samples."""
    return latents[np.random.default_rng([seed, 1]).permutation(len(latents))]


def mean_of(parts: np.ndarray) -> Parts:
    """Return parts ``(B, p)`` with their mean as the value."""
    return parts.mean(axis=1), parts


def scored(
    held: Held,
    null: Callable[[], Held],
    *,
    seed: int,
    certifies: str,
    leaves_open: str,
    over: str = "factor",
    assignment: np.ndarray | None = None,
) -> Score:
    """Make a score of what was measured on the latents and on shuffled ones.

    Parameters
    ----------
    held : Held
        Of the latents.
    null : callable
        Returns that of shuffled latents, when somebody asks for the chance level.
    seed : int
        Seed of the bootstrap.
    certifies, leaves_open : str
        The meaning of the best value.
    over : "factor" or "latent"
        What the parts are the scores of.
    assignment : ndarray (n,) of int, optional
        The latent of each factor.
    """
    value, parts = held.whole()
    return Score(
        float(value),
        baseline=lambda: float(null().whole()[0]),
        interval=lambda: _interval(held, float(value), seed),
        certifies=certifies,
        leaves_open=leaves_open,
        per_factor=parts if over == "factor" else None,
        per_latent=parts if over == "latent" else None,
        assignment=assignment,
    )


def scored_each(
    measure: Callable[[np.ndarray], Sequence[Held]],
    latents: np.ndarray,
    meanings: Sequence[tuple[str, str]],
    kinds: Sequence[str],
    *,
    seed: int,
) -> list[Score]:
    """Make several scores of one measurement; chance is measured once for all of them.

    ``meanings`` are what each certifies and leaves open, ``kinds`` what its parts are of.
    """
    null = cache(lambda: measure(shuffled(latents, seed)))

    def chance(number: int) -> Callable[[], Held]:
        return lambda: null()[number]

    return [
        scored(
            held,
            chance(number),
            seed=seed,
            certifies=certifies,
            leaves_open=leaves_open,
            over=kind,
        )
        for number, (held, (certifies, leaves_open), kind) in enumerate(
            zip(measure(latents), meanings, kinds, strict=True)
        )
    ]


def drawn(held: Held, seed: int) -> Parts:
    """Return values and parts under the weightings of a bootstrap."""
    values, parts = zip(*(held.of_weights(some) for some in _weights(held.rows, seed)), strict=True)
    return np.concatenate(values), np.concatenate(parts)


def _interval(held: Held, value: float, seed: int) -> tuple[float, float]:
    low, high = np.quantile(drawn(held, seed)[0], [0.025, 0.975])
    # A maximum over latents grows when samples are redrawn; the value itself stays inside.
    return min(float(low), value), max(float(high), value)


def _weights(rows: int, seed: int) -> Iterator[np.ndarray]:
    """Go through the weights ``(B, rows)`` of samples drawn with replacement, some at a time."""
    random = np.random.default_rng([seed, 2])
    at_once = min(_DRAWS, max(1, _WEIGHTS // rows))
    for start in range(0, _DRAWS, at_once):
        number = min(at_once, _DRAWS - start)
        drawn = random.integers(rows, size=(number, rows)) + rows * np.arange(number)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=number * rows)
        yield counts.reshape(number, rows) / rows


def over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0 where there is nothing to divide by."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.asarray(np.where(denominator > 0, numerator / safe, 0.0))


def explained(error: np.ndarray, target: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    r"""Return the :math:`R^2` ``(B, k)`` of predictions as a function of weights ``(B, N)``.

    Parameters
    ----------
    error, target : ndarray (N, k)
        What the predictions miss, and what was to be predicted.
    """
    centred = target - target.mean(axis=0)
    terms = np.hstack([np.square(error), centred, np.square(centred)])

    def r2(weights: np.ndarray) -> np.ndarray:
        missed, mean, square = np.split(weights @ terms, 3, axis=1)
        spread = square - np.square(mean)
        return np.where(spread > 0, 1 - over(missed, spread), 0.0)

    return r2
