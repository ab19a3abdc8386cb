"""Functions of weighted means over held-out samples: to bootstrap them is to weight them anew."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq
from scipy.stats import norm
from scipy.stats import t as student

from demix.metrics.blocks import Sampling

_FEW = 40  # quantiles of fewer draws are those of Student's distribution
_RANK = 1e-6  # directions of the rows below this share of the largest are taken for none

OfWeights = Callable[[np.ndarray], np.ndarray]
"""From weights ``(B, N)`` of samples to ``(B,)`` or ``(B, k)`` numbers."""
Values = tuple[np.ndarray, np.ndarray]
"""A score under B weightings, ``(B,)``, and its parts, ``(B, p)``."""


class Statistic(NamedTuple):
    """A function of weighted means over held-out samples."""

    rows: np.ndarray  # numbers of these samples
    of_weights: Callable[[np.ndarray], Values]  # of weights (B, samples), whose rows sum to 1

    def unweighted(self) -> Values:
        """Return the value and its parts under equal weights."""
        samples = len(self.rows)
        values, parts = self.of_weights(np.full((1, samples), 1 / samples))
        return values[0], parts[0]

    def bootstrap(self, sampling: Sampling) -> Values:
        """Return values and parts for blocks of samples that are drawn with replacement."""
        drawn = (self.of_weights(weights) for weights in sampling.weights(self.rows))
        values, parts = map(np.concatenate, zip(*drawn, strict=True))
        return values, parts

    def interval(self, sampling: Sampling, best: int, null: np.ndarray) -> tuple[float, float]:
        """Return the ends of a 95 % interval of the value.

        Each end is the farther of two: of the bootstrap of the samples that score, and of what the
        null says of fits to other samples, times what is left unexplained. Where chance gives the
        value, the bootstrap counts by half, and in full from three times what chance reaches on.
        """
        value = float(self.unweighted()[0])
        middle, reach = np.quantile(null, [0.5, 0.975 if best else 0.025])
        beyond = (value - middle) / (reach - middle) if reach != middle else np.inf
        drawn = np.quantile(self.bootstrap(sampling)[0], [0.025, 0.975])
        ends = [value, *(value + np.clip((beyond + 1) / 4, 0.5, 1) * (drawn - value))]
        ends += _null_ends(value, best, null)
        return float(min(ends)), float(max(ends))


def _null_ends(value: float, best: int, null: np.ndarray) -> list[float]:
    """Return between which chance levels a value is what chance gives in 95 % of cases."""
    # What a score leaves to its best value is compared as a ratio, since its noise is as small.
    left = np.abs(best - null)
    middle = float(np.median(left))
    if middle == 0:
        return []
    low, high = np.quantile(left / middle, [0.025, 0.975])
    if len(null) < _FEW:
        # The median deviation, since a rare false finding makes some scores 1 by chance.
        spread = norm.isf(0.25) ** -1 * float(np.median(np.abs(left / middle - 1)))
        reach = float(student.isf(0.025, len(null) - 1)) * spread * (1 + 1 / len(null)) ** 0.5
        low, high = max(0.0, 1 - reach), 1 + reach
    own = abs(best - value)
    # No chance level is farther from the best value than what chance ever gave.
    most = own and min(own / low if low > 0 else np.inf, float(left.max()))
    return [best + (x if best == 0 else -x) for x in (own / high, most)]


def mean_of(parts: np.ndarray) -> Values:
    """Return parts ``(B, p)`` with their mean as the value."""
    return parts.mean(axis=1), parts


def units_of(x: np.ndarray) -> np.ndarray:
    """Return a power of 2 about as large as the range of each column: dividing by it is exact."""
    reach = x.max(axis=0).astype(np.float64) - x.min(axis=0)
    return np.asarray(np.ldexp(1.0, np.frexp(reach)[1]))


def unit_columns(x: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and of size about 1; those that vary by rounding only are zeros."""
    flat = np.ptp(x, axis=0) <= 8 * np.finfo(float).eps * np.abs(x).max(axis=0)
    return np.where(flat, 0.0, (x - x.mean(axis=0)) / units_of(x))


def over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0 where there is nothing to divide by."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.asarray(np.where(denominator > 0, numerator / safe, 0.0))


def r2_of(error: np.ndarray, target: np.ndarray) -> OfWeights:
    r"""Return the :math:`R^2` ``(B, k)``, under weights, of what misses ``target`` by ``error``."""
    centred = target - target.mean(axis=0)
    terms = np.hstack([np.square(error), centred, np.square(centred)])

    def r2(weights: np.ndarray) -> np.ndarray:
        missed, mean, square = np.split(weights @ terms, 3, axis=1)
        spread = square - np.square(mean)
        return np.where(spread > 0, 1 - over(missed, spread), 0.0)

    return r2


def affine_prediction(rows: np.ndarray, targets: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return what least squares from rows to targets, with an intercept, give for other rows."""
    # Not by scikit-learn, whose checks take ten times as long, for each order of chance.
    centre, level = rows.mean(axis=0), targets.mean(axis=0)
    slopes = lstsq(rows - centre, targets - level, cond=_RANK, check_finite=False)[0]
    return (others - centre) @ slopes + level
