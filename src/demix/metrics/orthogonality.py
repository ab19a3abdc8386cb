"""How far the linear part of a representation is from a rotation with one scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.held import Held, Parts, over, scored, shuffled
from demix.metrics.score import Score


def orthogonality_error(latents: Any, factors: Any, *, seed: int = 0) -> Score:
    r"""Return the mean deviation of the singular values of the map from factors to latents.

    .. math:: \frac{1}{d} \sum_i \left| \frac{s_i}{\bar s} - 1 \right|

    with the singular values :math:`s_i` of the least-squares map and their mean. Case C3 of
    Theorem 1 of Reizinger et al. (2024) promises zero. No inverse temperature or concentration
    enters, unlike the mean absolute error of :math:`s_i` from :math:`\kappa / \beta`, which needs
    both to be known.

    Parameters
    ----------
    latents, factors : array (N, d)
        As many latents as factors.
    seed : int
        Seed of the shuffled baseline and of the interval.

    Returns
    -------
    Score
        Smaller is better. Invariant to rotations, reflections, shifts and one common scale of the
        latents. ``per_factor`` holds the singular values over their mean, ``baseline`` the error of
        shuffled latents.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.orthogonality import orthogonality_error
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> float(round(orthogonality_error(3 * z[:, ::-1] + 1, z), 6))
    0.0
    >>> float(round(orthogonality_error(z * [1.0, 3.0], z), 6))
    0.5
    """
    latents, factors = check_pair(latents, factors)
    if latents.shape[1] != factors.shape[1]:
        raise DemixError(
            "A rotation needs as many latents as factors, but got "
            f"{latents.shape[1]} and {factors.shape[1]}."
        )

    true = factors - factors.mean(axis=0)

    def measure(z: np.ndarray) -> Held:
        both = np.hstack([true, z - z.mean(axis=0)])

        def deviation(weights: np.ndarray) -> Parts:
            relative = _relative(both, weights)
            return np.abs(relative - 1).mean(axis=1), relative

        return Held(len(z), deviation)

    return scored(
        measure(latents),
        lambda: measure(shuffled(latents, seed)),
        seed=seed,
        certifies="a linear part that is a rotation or reflection with one scale",
        leaves_open="any nonlinear part: read it beside a regression score",
    )


def _relative(both: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the singular values, over their mean, of the maps from the left half to the right."""
    dim = both.shape[1] // 2
    mean = weights @ both
    products = np.stack([(both * some[:, None]).T @ both for some in weights])
    covariance = products - mean[:, :, None] * mean[:, None, :]
    inverse = np.linalg.pinv(covariance[:, :dim, :dim], hermitian=True)
    values = np.linalg.svd(inverse @ covariance[:, :dim, dim:], compute_uv=False)
    # Constant latents have no linear part; nothing of them is orthogonal.
    return over(values, values.mean(axis=1, keepdims=True))
