"""Linear read-outs in principal axes of the features: all penalties, many factors at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from demix.metrics.statistic import units_of

# Penalties that are tried, in units of the variance of one feature, strongest first.
RIDGE = tuple(10.0**power for power in range(3, -9, -1))
LOGISTIC = tuple(10.0**power for power in range(1, -6, -1))

_AT_ONCE = 4096  # rows that are turned into float64 at a time, to add them up with all digits
_FLAT = 1e-10  # of the largest variance: less is rounding; the smallest penalty is far above
_NATS = 1e-7  # a logistic fit ends when the curvature at its start leaves at most this gain
_PATIENCE = 2  # weaker penalties in a row that may be worse before a factor is done


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Principal axes of standardised training features.

    With :math:`a = P^\top \mathrm{diag}(\sigma)^{-1} (x - \mu)` the training rows have mean zero
    and covariance :math:`\mathrm{diag}(v)`, and ridge regression of a centred target :math:`y` with
    penalty :math:`\alpha` the coefficients :math:`\mathrm{mean}(a_i y) / (v_i + \alpha)`.
    """

    mean: np.ndarray  # (d,), of the training features
    units: np.ndarray  # (d,), powers of 2 that features are divided by: float32 holds the axes
    axes: np.ndarray  # (d, q), with the scale of each feature; q is the rank
    variances: np.ndarray  # (q,), along the axes

    @classmethod
    def of(cls, train: np.ndarray) -> Self:
        """Return the axes of training features ``(n, d)``, in the smaller of both dimensions."""
        rows, width = train.shape
        mean = train.mean(axis=0, dtype=np.float64)
        units = units_of(train)
        spread = _spread(train, mean, units)
        # A column that never changes has no scale.
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        if width <= rows:
            parts = ((block - mean) / units * scale for block in _blocks(train))
            gram = np.asarray(sum(part.T @ part for part in parts))
        else:
            standard = (train - mean) / units * scale
            gram = standard @ standard.T
        variances, axes = np.linalg.eigh(gram / rows)
        kept = variances > _FLAT * max(variances[-1], 0.0)
        variances, axes = variances[kept], axes[:, kept]
        if width > rows:
            axes = standard.T @ (axes / np.sqrt(rows * variances))
        return cls(mean, units, scale[:, None] * axes, variances)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the coordinates ``(N, q)`` of features ``(N, d)``, in their precision."""
        coordinates = np.empty((len(features), self.axes.shape[1]), dtype=features.dtype)
        axes = self.axes.astype(features.dtype)
        for start in range(0, len(features), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            moved = (features[part] - self.mean) / self.units  # centred first, to keep the digits
            coordinates[part] = moved.astype(features.dtype) @ axes
        return coordinates


def ridge(
    basis: Basis, train: np.ndarray, validation: np.ndarray, targets: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Fit :math:`y \approx b + w^\top a` with the penalty that predicts the validation rows best.

    .. math::
        \min_{w, b} \; \mathrm{mean}\, \|y - b - w^\top a\|^2 + \alpha \|w\|^2

    Of coordinates ``(n, q)`` and ``(m, q)`` in the basis; the columns of the targets ``(n, k)`` and
    ``(m, k)`` share a penalty. Returns coefficients ``(q, k)``, intercept ``(k,)`` and penalty.
    """
    fitted, checked = targets
    intercept = fitted.mean(axis=0)
    slopes = (train.T @ (fitted - intercept).astype(train.dtype)).astype(float) / len(train)
    best = (np.inf, slopes, 0.0)
    for penalty in RIDGE:
        coefficients = slopes / (basis.variances + penalty)[:, None]
        predicted = validation @ coefficients.astype(validation.dtype) + intercept
        error = float(np.square(checked - predicted).sum())
        if error < best[0]:
            best = (error, coefficients, penalty)
    return best[1], intercept, best[2]


def _spread(train: np.ndarray, mean: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the standard deviations ``(d,)`` of columns in units, exactly 0 for a constant."""
    squares = sum(np.square((block - mean) / units).sum(axis=0) for block in _blocks(train))
    return np.where(train.max(axis=0) > train.min(axis=0), np.sqrt(squares / len(train)), 0.0)


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]


def logistic(
    basis: Basis,
    train: np.ndarray,
    validation: np.ndarray,
    targets: tuple[np.ndarray, np.ndarray],
    callback: Callable[[float], None] = lambda penalty: None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Fit logistic regressions with the penalty that predicts the validation rows best.

    .. math::
        \min_{W, b} \; \mathrm{mean}\, \big[-\ln p(y \mid b + W^\top a)\big]
        + \tfrac{\alpha}{2} \|W\|^2

    Penalties are tried from the strongest on, each fit beginning where the last one ended. Targets
    ``(n, f, c)`` and ``(m, f, c)`` of ``f`` factors are 1 for the category of a row and else 0; two
    categories have a single column. Returns weights ``(q + 1, f, c)``, the intercept last, and
    penalties ``(f,)``.
    """
    fitted, checked = targets
    train, validation = (
        np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)]) for rows in (train, validation)
    )
    variances = np.append(basis.variances, 1.0)
    weights = np.zeros((train.shape[1], *fitted.shape[1:]))
    best, penalties = weights.copy(), np.full(fitted.shape[1], np.nan)
    least, worse = np.full(len(penalties), np.inf), np.zeros(len(penalties), dtype=int)
    for penalty in LOGISTIC:
        callback(penalty)
        going = np.flatnonzero(worse < _PATIENCE)
        if len(going) == 0:
            break
        weights[:, going] = _minimum(train, fitted[:, going], variances, penalty, weights[:, going])
        losses = log_loss(product(validation, weights[:, going]), checked[:, going])
        better = losses < least[going]
        chosen = going[better]
        best[:, chosen], penalties[chosen] = weights[:, chosen], penalty
        least[chosen] = losses[better]
        worse[going] = np.where(better, 0, worse[going] + 1)
    return best, penalties


def product(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return rows ``(N, q)`` times weights ``(q, f, c)``, in the precision of the rows."""
    return np.tensordot(rows, weights.astype(rows.dtype), axes=1)


def log_loss(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the mean negative log-likelihood ``(f,)`` of targets ``(N, f, c)`` in nats."""
    whole = np.logaddexp(0, logits[..., 0]) if logits.shape[2] == 1 else logsumexp(logits, axis=2)
    return np.asarray((whole - (targets * logits).sum(axis=2)).mean(axis=0, dtype=np.float64))


def _minimum(
    train: np.ndarray, targets: np.ndarray, variances: np.ndarray, penalty: float, start: np.ndarray
) -> np.ndarray:
    """Go down from ``start``, all factors together, in units of the curvature of the features."""
    decay = np.full((len(variances), 1, 1), penalty)
    decay[-1] = 0.0  # the intercept is free
    share = targets.mean(axis=0, dtype=np.float64)
    # At the optimum of the intercept alone, the curvature of a category is its p (1 - p).
    bend = np.sqrt(variances[:, None, None] * np.maximum(share * (1 - share), 1e-4) + decay)

    left = np.zeros(start.shape[1])

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        slopes = point.reshape(bend.shape) / bend
        logits = product(train, slopes)
        shares = expit(logits) if logits.shape[2] == 1 else softmax(logits, axis=2)
        gradient = np.tensordot(train.T, shares - targets, axes=1) / len(train) + decay * slopes
        left[:] = np.square(gradient / bend).sum(axis=(0, 2)) / 2
        value = log_loss(logits, targets).sum() + (decay * np.square(slopes)).sum() / 2
        return float(value), (gradient / bend).ravel()

    def stop(_: np.ndarray) -> None:
        if left.max() < _NATS:
            raise StopIteration

    begin, limits = (start * bend).ravel(), {"maxiter": 200, "ftol": 1e-9}
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", callback=stop, options=limits)
    return np.asarray(found.x.reshape(bend.shape) / bend)
