"""Read-outs of numbers: ridge regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from demix.metrics.probes.basis import Basis

PENALTIES = tuple(10.0**power for power in range(3, -9, -1))
"""Penalties that are tried, in units of the variance of one feature, strongest first."""


def ridge(
    basis: Basis,
    train: np.ndarray,
    validation: np.ndarray,
    targets: Sequence[tuple[np.ndarray, np.ndarray]],
) -> list[tuple[np.ndarray, np.ndarray, float]]:
    r"""Fit :math:`y \approx b + w^\top a` with the penalty that predicts the validation rows best.

    .. math::
        \min_{w, b} \; \mathrm{mean}\, \|y - b - w^\top a\|^2 + \alpha \|w\|^2

    Parameters
    ----------
    basis : Basis
        Of the training features.
    train, validation : ndarray (n, q), (m, q)
        Coordinates.
    targets : sequence of two ndarray (n, k), (m, k)
        For each factor what the training and what the validation rows shall give; the ``k``
        columns of one factor share their penalty.

    Returns
    -------
    list of (ndarray (q, k), ndarray (k,), float)
        Coefficients, intercept and penalty for each factor.
    """
    fits = []
    for fitted, judged in targets:
        intercept = fitted.mean(axis=0)
        slopes = (train.T @ (fitted - intercept).astype(train.dtype)).astype(float) / len(train)
        best = (np.inf, slopes, 0.0)
        for penalty in PENALTIES:
            coefficients = slopes / (basis.variances + penalty)[:, None]
            predicted = validation @ coefficients.astype(validation.dtype) + intercept
            error = float(np.square(judged - predicted).sum())
            if error < best[0]:
                best = (error, coefficients, penalty)
        fits.append((best[1], intercept, best[2]))
    return fits
