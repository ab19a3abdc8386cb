"""Read-outs of rare factors: as many rows with the factor as without it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest, hypergeom, ttest_1samp

from demix._support.errors import DemixError
from demix._support.validation import check_matrix, check_seed
from demix.metrics.probes.linear import Basis

LEVEL = 0.05 / 85
"""The level of Reizinger et al. (2024): 0.05 over 17 factors and 5 models (Bonferroni)."""

_HELD_OUT = 0.3


@dataclass(frozen=True, eq=False)
class BalancedReadout:
    """How well a factor of two values is read out; made by :func:`balanced_readout`.

    Attributes
    ----------
    accuracies : array (R,)
        Held-out accuracy of each resampling, 1/2 by chance. Resamplings share rows.
    held_accuracy, held_interval, held_rows : float, tuple of float, int
        Accuracy on rows that no fit used, its 95 % interval (Wilson 1927), and their number.
    p_resampled : float
        Of a t-test of the accuracies against 1/2, as in the paper. It takes the resamplings for
        independent, which they are not, and is too small.
    p_held : float
        Of Fisher's exact test on the held-out rows: the share of all assignments of the factor to
        these rows under which the read-out is right at least as often.
    rarer : int
        Rows of the rarer value; as many of the other were drawn.
    """

    accuracies: np.ndarray
    held_accuracy: float
    held_interval: tuple[float, float]
    held_rows: int
    p_resampled: float
    p_held: float
    rarer: int

    @property
    def accuracy(self) -> float:
        """Mean over resamplings."""
        return float(self.accuracies.mean())

    @property
    def sem(self) -> float:
        """Standard error of that mean over resamplings, as in the paper; 0 for a single one."""
        count = len(self.accuracies)
        return float(self.accuracies.std(ddof=1) / count**0.5) if count > 1 else 0.0


def balanced_readout(
    features: Any,
    factor: Any,
    *,
    repeats: int = 10,
    seed: int = 0,
    callback: Callable[[], None] = lambda: None,
) -> BalancedReadout:
    """Read a factor of two values out of features, by logistic regression on balanced rows.

    All rows of the rarer value and as many of the other, drawn anew for each resampling, are split
    into 70 % to fit and 30 % to score. Features are standardised and the penalty is chosen on the
    rows of the fit alone. One more split, of which no row is used twice, gives a valid test.

    Parameters
    ----------
    features : array (N, d)
        A representation.
    factor : array (N,)
        Two values: numbers, text or truth values.
    repeats : int
        Resamplings.
    seed : int
        Draws rows and splits, which do not depend on the features.
    callback : callable, optional
        Called after each of ``repeats + 1`` fits.

    References
    ----------
    P. Reizinger et al. (2024), Cross-Entropy Is All You Need To Invert the Data Generating
    Process, Figure 3.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers import balanced_readout
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(600, 5))
    >>> found = balanced_readout(x, x[:, 0] + x[:, 1] > 1)
    >>> found.accuracy > 0.9, found.p_held < 1e-6
    (True, True)
    >>> balanced_readout(x, random.random(600) < 0.3).p_held > 0.01
    True
    """
    values = check_matrix(features, "features")
    second = _two_valued(factor, len(values))
    check_seed(seed)
    if repeats < 1:
        raise DemixError(f"A read-out needs at least 1 resampling, but got {repeats}.")
    rarer = int(min(second.sum(), (~second).sum()))
    if held_out(rarer) < 1:
        raise DemixError(
            f"Expected at least 2 rows of each value, to fit and to score, but one has {rarer}."
        )
    outcomes = []
    for number in range(repeats + 1):
        fit, test = _split(second, np.random.default_rng([seed, number]))
        outcomes.append((two_classes(values[fit], second[fit])(values[test]), second[test]))
        callback()
    accuracies = np.array([(guess == true).mean() for guess, true in outcomes])
    guess, true = outcomes[0]
    right = int((guess == true).sum())
    interval = binomtest(right, len(true)).proportion_ci(method="wilson")
    return BalancedReadout(
        accuracies[1:],
        float(accuracies[0]),
        (float(interval.low), float(interval.high)),
        len(true),
        _t_test(accuracies[1:]),
        _fisher(guess, true),
        rarer,
    )


def is_testable(rarer: int, level: float = LEVEL) -> bool:
    """Return whether a perfect read-out of the rows held out would be significant.

    With ``m`` rows of each value held out, Fisher's exact test never falls below
    ``1 / binom(2 m, m)``.

    Examples
    --------
    >>> from demix.papers import is_testable
    >>> is_testable(16), is_testable(57)
    (False, True)
    """
    held = held_out(rarer)
    return comb(2 * held, held) >= 1 / level


def held_out(rarer: int) -> int:
    """Return how many rows of each value are held out: 30 %, leaving at least one to fit."""
    return max(0, min(max(1, round(_HELD_OUT * rarer)), rarer - 1))


def _two_valued(factor: Any, rows: int) -> np.ndarray:
    array = np.asarray(factor)
    if array.shape != (rows,):
        raise DemixError(
            f"Expected one value of the factor for each of {rows} rows, but got an array of shape "
            f"{array.shape}."
        )
    values = np.unique(array)
    if len(values) != 2:
        found = f"all rows have {values[0]!s}" if len(values) == 1 else f"it has {len(values)}"
        raise DemixError(f"A balanced read-out needs a factor of two values, but {found}.")
    return np.asarray(array == values[1])


def _split(second: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw equally many rows of both values, and hold out the same share of each."""
    sides = [np.flatnonzero(second), np.flatnonzero(~second)]
    rarer = min(map(len, sides))
    held = held_out(rarer)
    drawn = [random.permutation(side)[:rarer] for side in sides]
    return np.concatenate([d[held:] for d in drawn]), np.concatenate([d[:held] for d in drawn])


def _t_test(accuracies: np.ndarray) -> float:
    # SciPy warns of values that are all alike, whose test is degenerate.
    if np.ptp(accuracies) == 0 or len(accuracies) < 2:
        return 1.0 if len(accuracies) < 2 or accuracies[0] == 0.5 else 0.0
    return float(ttest_1samp(accuracies, 0.5).pvalue)


def _fisher(guess: np.ndarray, true: np.ndarray) -> float:
    right = int((guess & true).sum())
    return float(hypergeom.sf(right - 1, len(true), int(true.sum()), int(guess.sum())))


# Penalties that are tried, in units of the variance of one feature.
_PENALTIES = 10.0 ** np.arange(-4, 4.5, 0.5)


class TwoClasses(NamedTuple):
    """A hyperplane between two classes: :math:`w^T x + b > 0` is the second one."""

    weights: np.ndarray
    offset: float
    penalty: float

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return ``(N,)`` whether rows are of the second class."""
        return np.asarray(features @ self.weights + self.offset > 0)


def two_classes(features: np.ndarray, second: np.ndarray) -> TwoClasses:
    r"""Fit a logistic regression of standardised features with an L2 penalty.

    .. math::
        \min_{w, b} \; \mathrm{mean}_i \ln\big(1 + e^{-y_i (w^\top x_i + b)}\big)
        + \tfrac{\alpha}{8} \|w\|^2, \qquad y_i = \pm 1

    The penalty :math:`\alpha` is that of the ridge regression of :math:`y` whose error is least
    when each row is predicted from all others: :math:`(y_i - \hat y_i) / (1 - h_i)` with the
    leverage :math:`h_i` (Allen 1974). The logistic loss bends at most a quarter as much as half the
    squared error, so a quarter of it goes with that loss. Both are solved in the principal axes of
    the rows, where the loss bends about as much in all directions once these are scaled.
    """
    basis, rows = Basis.of(features), len(features)
    places, variances = basis(features), basis.variances
    signs = np.where(second, 1.0, -1.0)
    penalty = _chosen(places / np.sqrt(rows * variances), variances, signs)
    bend = np.sqrt((variances + penalty) / 4)

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        slopes, offset = point[:-1] / bend, 2 * point[-1]
        margins = signs * (places @ slopes + offset)
        pulls = -signs * expit(-margins) / rows
        value = np.logaddexp(0, -margins).mean() + penalty / 8 * (slopes @ slopes)
        gradient = (places.T @ pulls + penalty / 4 * slopes) / bend
        return float(value), np.append(gradient, 2 * pulls.sum())

    # Where it begins is a step of Newton's from zero.
    start = np.append(places.T @ signs / (2 * rows) / bend, signs.mean())
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-5}).x
    weights = basis.axes @ (found[:-1] / bend) / basis.units
    return TwoClasses(weights, float(2 * found[-1] - weights @ basis.mean), float(penalty))


def _chosen(sides: np.ndarray, variances: np.ndarray, signs: np.ndarray) -> float:
    """Return the penalty of least error; ``sides`` ``(n, q)`` have orthonormal columns."""
    centred = signs - signs.mean()
    along, squares = sides.T @ centred, np.square(sides)
    errors = []
    for penalty in _PENALTIES:
        kept = variances / (variances + penalty)
        left = 1 - 1 / len(signs) - squares @ kept
        missed = (centred - sides @ (kept * along)) / np.maximum(left, 1e-9)
        errors.append(float(np.square(missed).mean()))
    return float(_PENALTIES[np.argmin(errors)])
