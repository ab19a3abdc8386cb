"""Logistic regression on few rows, its penalty chosen by leaving rows out one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from demix.metrics.probes.ridge import Basis

# Penalties that are tried, in units of the variance of one feature.
_PENALTIES = 10.0 ** np.arange(-4, 4.5, 0.5)


class TwoClasses(NamedTuple):
    """A hyperplane between two classes: :math:`w^T x + b > 0` is the second one.

    ``weights`` :math:`w` are ``(d,)``, for features that are not standardised; ``penalty`` is in
    units of the variance of one feature.
    """

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
    when each row is predicted from all others, which has a closed form:
    :math:`(y_i - \hat y_i) / (1 - h_i)` with the leverage :math:`h_i` (Allen 1974). The logistic
    loss bends at most a quarter as much as half the squared error, so a quarter of the penalty
    goes with it. Both are solved in the principal axes of the rows, where the loss bends about as
    much in all directions once these are scaled.

    ``features`` ``(n, d)`` are the training rows alone; ``second`` ``(n,)`` says which of them
    belong to the second class.
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
