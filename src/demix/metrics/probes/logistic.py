"""Read-outs of categories: logistic regression of many factors at once.

scikit-learn fits one factor at a time; here all share the products of matrices.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from demix.metrics.probes.ridge import Basis

PENALTIES = tuple(10.0**power for power in range(1, -6, -1))
"""Penalties that are tried, in units of the variance of one feature, strongest first."""

# A fit ends when at most this gain, in nats, is left by the curvature at its start.
_NATS = 1e-7
# Weaker penalties in a row that may predict validation rows worse before a factor is done.
_PATIENCE = 2


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
    the validation rows are predicted no better. Targets ``(n, f, c)`` and ``(m, f, c)`` of ``f``
    factors are 1 for the category of a row and else 0; two categories have a single column.
    Returns weights ``(q + 1, f, c)``, the intercept last, and penalties ``(f,)``.
    """
    fitted, checked = targets
    train, validation = (
        np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)]) for rows in (train, validation)
    )
    variances = np.append(basis.variances, 1.0)
    weights = np.zeros((train.shape[1], *fitted.shape[1:]))
    best, penalties = weights.copy(), np.full(fitted.shape[1], np.nan)
    least, worse = np.full(len(penalties), np.inf), np.zeros(len(penalties), dtype=int)
    for penalty in PENALTIES:
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
    train: np.ndarray,
    targets: np.ndarray,
    variances: np.ndarray,
    penalty: float,
    weights: np.ndarray,
) -> np.ndarray:
    """Go down from ``weights``, all factors together, in units of the curvature of the features."""
    decay = np.full((len(variances), 1, 1), penalty)
    decay[-1] = 0.0  # the intercept is free
    share = targets.mean(axis=0, dtype=np.float64)
    # At the optimum of the intercept alone, the curvature of a category is its p (1 - p).
    bend = np.sqrt(variances[:, None, None] * np.maximum(share * (1 - share), 1e-4) + decay)

    left = np.zeros(weights.shape[1])

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

    found = minimize(
        *(loss, (weights * bend).ravel()),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": 200, "ftol": 1e-9},
    )
    return np.asarray(found.x.reshape(bend.shape) / bend)
