"""How far the linear part of a representation is from orthogonal."""

from typing import Any

import numpy as np

from demix.metrics.blocks import Blocks, sampling_of
from demix.metrics.regression import check_square
from demix.metrics.score import Meaning, Score, scored
from demix.metrics.statistic import Statistic, Values, over
from demix.theory.setting import UP_TO


def orthogonality_error(
    latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the mean deviation of the singular values of the map from factors to latents.

    .. math:: \frac{1}{d} \sum_i \left| \frac{s_i}{\bar s} - 1 \right|

    with the singular values :math:`s_i` of the least-squares map and their mean. Case C3 of
    Theorem 1 of Reizinger et al. (2024) promises zero. No inverse temperature or concentration
    enters, unlike the mean absolute error of :math:`s_i` from :math:`\kappa / \beta`, which needs
    both to be known.

    Smaller is better; ``per_factor`` holds the singular values over their mean. Parameters and
    invariances are those of :func:`demix.orthogonal_r2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers.reizinger2024.orthogonality import orthogonality_error
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> float(round(orthogonality_error(3 * z[:, ::-1] + 1, z), 6))
    0.0
    >>> float(round(orthogonality_error(z * [1.0, 3.0], z), 6))
    0.5
    """
    latents, factors = check_square(latents, factors)
    sampling = sampling_of(latents, factors, blocks, seed)
    true = factors - factors.mean(axis=0)

    def measure(z: np.ndarray) -> Statistic:
        both = np.hstack([true, z - z.mean(axis=0)])

        def deviation(weights: np.ndarray) -> Values:
            relative = _relative(both, weights)
            return np.abs(relative - 1).mean(axis=1), relative

        return Statistic(np.arange(len(z)), deviation)

    meaning = Meaning(
        f"a linear part that is {UP_TO['orthogonal']} with one scale",
        "any nonlinear part: read it together with a regression score",
        best=0,
    )
    return scored(measure, latents, meaning, sampling)


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
