"""Read-outs of categories: logistic regression of many factors at once.

Written by hand, because scikit-learn fits one factor at a time: here all share the products.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logsumexp, softmax

from demix.metrics.probes.ridge import Basis

PENALTIES = tuple(10.0**power for power in range(1, -6, -1))
"""Penalties that are tried, in units of the variance of one feature, strongest first."""

_STEPS = 200
# A fit ends when at most this gain, in nats, is left by the curvature at its start.
_NATS = 1e-6
# Weaker penalties in a row that may predict validation rows worse before a factor is done.
_PATIENCE = 2


class Logits:
    """Logits ``(N, f, c)`` of ``f`` factors: a single column for two categories, else ``c``."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @property
    def shares(self) -> np.ndarray:
        """Probability of each column."""
        return expit(self.values) if self.values.shape[2] == 1 else softmax(self.values, axis=2)

    def loss(self, targets: np.ndarray) -> np.ndarray:
        """Return the mean negative log-likelihood ``(f,)`` of targets ``(N, f, c)`` in nats."""
        z = self.values
        whole = np.logaddexp(0, z[..., 0]) if z.shape[2] == 1 else logsumexp(z, axis=2)
        return np.asarray((whole - (targets * z).sum(axis=2)).mean(axis=0, dtype=np.float64))

    def bend(self, direction: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the second derivative ``(f,)`` of the loss along a direction of logits."""
        if self.values.shape[2] == 1:
            bent = (shares * (1 - shares) * np.square(direction))[..., 0]
        else:
            mean = (shares * direction).sum(axis=2)
            bent = (shares * np.square(direction)).sum(axis=2) - np.square(mean)
        return np.asarray(bent.mean(axis=0, dtype=np.float64))


def logistic(
    basis: Basis,
    train: np.ndarray,
    validation: np.ndarray,
    targets: tuple[np.ndarray, np.ndarray],
    *,
    callback: Callable[[float], None] = lambda penalty: None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Fit logistic regressions with the penalty that predicts the validation rows best.

    .. math::
        \min_{W, b} \; \mathrm{mean}\, \big[-\ln p(y \mid b + W^\top a)\big]
        + \tfrac{\alpha}{2} \|W\|^2

    Penalties are tried from the strongest on, each fit beginning where the last one ended, until
    the validation rows are predicted no better. All factors take every step together, so that a
    step is two products of matrices for all of them. Targets ``(n, f, c)`` and ``(m, f, c)`` of
    ``f`` factors are 1 for the category of a row and else 0; two categories have a single column.
    Returns weights ``(q + 1, f, c)``, the intercept last, and penalties ``(f,)``.
    """
    fitted, checked = targets
    factors, columns = fitted.shape[1:]
    train, validation = _with_ones(train), _with_ones(validation)
    variances = np.append(basis.variances, 1.0)
    weights = np.zeros((train.shape[1], factors, columns))
    best, penalties = weights.copy(), np.full(factors, np.nan)
    least, worse = np.full(factors, np.inf), np.zeros(factors, dtype=int)
    for penalty in PENALTIES:
        callback(penalty)
        going = np.flatnonzero(worse < _PATIENCE)
        if len(going) == 0:
            break
        weights[:, going] = _minimum(train, fitted[:, going], variances, penalty, weights[:, going])
        losses = Logits(product(validation, weights[:, going])).loss(checked[:, going])
        better = losses < least[going]
        chosen = going[better]
        best[:, chosen], penalties[chosen] = weights[:, chosen], penalty
        least[chosen] = losses[better]
        worse[going] = np.where(better, 0, worse[going] + 1)
    return best, penalties


def product(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return rows ``(N, q)`` times weights ``(q, f, c)``, in the precision of the rows."""
    size, *columns = weights.shape
    flat = rows @ weights.reshape(size, math.prod(columns)).astype(rows.dtype)
    return flat.reshape(len(rows), *columns)


def _minimum(
    train: np.ndarray,
    targets: np.ndarray,
    variances: np.ndarray,
    penalty: float,
    weights: np.ndarray,
) -> np.ndarray:
    """Go down from ``weights`` by conjugate gradients, scaled by the curvature of the features."""
    decay = np.full((len(variances), 1, 1), penalty)
    decay[-1] = 0.0  # the intercept is free
    share = targets.mean(axis=0, dtype=np.float64)
    # At the optimum of the intercept alone, the curvature of a category is its p (1 - p).
    scale = variances[:, None, None] * np.maximum(share * (1 - share), 1e-4) + decay
    logits = Logits(product(train, weights))
    direction = np.zeros_like(weights)
    before, last = np.zeros_like(weights), np.full(weights.shape[1], np.inf)
    for _ in range(_STEPS):
        residual = logits.shares - targets
        flat = train.T @ residual.reshape(len(train), -1)
        gradient = flat.reshape(weights.shape).astype(float) / len(train) + decay * weights
        scaled = gradient / scale
        gain = (gradient * scaled).sum(axis=(0, 2))
        if (gain / 2 < _NATS).all():
            break
        # Polak and Ribiere's, which begins anew by itself where the valley turns.
        turn = np.maximum((scaled * (gradient - before)).sum(axis=(0, 2)) / last, 0.0)
        direction = turn[:, None] * direction - scaled
        uphill = (direction * gradient).sum(axis=(0, 2)) >= 0
        direction[:, uphill] = -scaled[:, uphill]
        before, last = gradient, np.maximum(gain, np.finfo(float).tiny)
        moved = product(train, direction)
        step = _step(logits, targets, moved, decay, weights, direction)
        weights = weights + step[:, None] * direction
        logits = Logits(logits.values + (step[:, None] * moved).astype(moved.dtype))
    return weights


def _step(
    logits: Logits,
    targets: np.ndarray,
    moved: np.ndarray,
    decay: np.ndarray,
    weights: np.ndarray,
    direction: np.ndarray,
) -> np.ndarray:
    """Return the step ``(f,)`` of each factor: Newton's, halved until it lowers the loss."""
    slope = ((logits.shares - targets) * moved).sum(axis=2).mean(axis=0, dtype=np.float64)
    slope = slope + (decay * weights * direction).sum(axis=(0, 2))
    bend = logits.bend(moved, logits.shares) + (decay * np.square(direction)).sum(axis=(0, 2))
    step = -slope / np.maximum(bend, np.finfo(float).tiny)
    start = logits.loss(targets) + _size(decay, weights)
    for _ in range(30):
        ahead = Logits(logits.values + (step[:, None] * moved).astype(moved.dtype))
        loss = ahead.loss(targets) + _size(decay, weights + step[:, None] * direction)
        # Losses of float32 logits are not more precise.
        high = loss > start + 1e-7
        if not high.any():
            break
        step = np.where(high, step / 2, step)
    return step


def _size(decay: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.asarray((decay * np.square(weights)).sum(axis=(0, 2)) / 2)


def _with_ones(rows: np.ndarray) -> np.ndarray:
    return np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)])
