"""Scores by regression: affine and orthogonal maps between latents and factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import LinearRegression

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.blocks import Blocks, sampling_of
from demix.metrics.score import ANY_MIXING, Meaning, Score, scored
from demix.metrics.statistic import Statistic, Values, mean_of, over, r2_of, unit_columns
from demix.theory.setting import UP_TO


def affine_r2(latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0) -> Score:
    r"""Return the held-out :math:`R^2` of a linear regression from latents to factors.

    Fitted with an intercept on one random half of the samples and scored on the other, the mean
    over factors. 1 means identified up to an affine map (Theorem 5); Table 1 reports this score
    (fitted and scored on the same samples).

    Parameters
    ----------
    latents : array (N, m)
        What an encoder recovered.
    factors : array (N, n)
        The true factors.
    blocks : None, int, "auto" or array (N,)
        Which rows are alike: none, those of blocks of this length in time order ("auto" takes it
        from their autocorrelation), or those of the same recording, subject or film, named by a
        number or a text for each row. Blocks in time order fit in one half of the time and score
        in the other, after a gap of one block; others fit or score as a whole. Intervals redraw
        whole blocks, and chance keeps them together.
    seed : int
        Seed of the split, of the shuffled baseline and of the interval.

    Returns
    -------
    Score
        Invariant to invertible affine maps of the latents, and to no more.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import affine_r2
    >>> z = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> mixed = z @ [[1.0, 2.0], [3.0, -1.0]] + 5
    >>> float(round(affine_r2(mixed, z), 6))
    1.0
    >>> bool(affine_r2(z**8, z) < 0.9)
    True
    """
    latents, factors = map(unit_columns, check_pair(latents, factors))
    sampling = sampling_of(latents, factors, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        predicted = LinearRegression().fit(z[fit], factors[fit]).predict(z[test])
        return _mean_r2(predicted, factors, test)

    meaning = Meaning(f"the factors up to {UP_TO['affine']}", ANY_MIXING)
    return scored(measure, latents, meaning, sampling)


def orthogonal_r2(latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0) -> Score:
    r"""Return the held-out :math:`R^2` of the best rotation, with one scale and a shift.

    Orthogonal Procrustes on one half of the samples, scored on the other. 1 means identified up
    to an orthogonal map (Theorem 2); the common scale is the model's radius.

    There must be as many latents as factors. Invariant to rotations, reflections, shifts and one
    common scale of the latents. Parameters are those of :func:`affine_r2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import orthogonal_r2
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> float(round(orthogonal_r2(3 * z[:, ::-1], z), 6))
    1.0
    >>> bool(orthogonal_r2(z * [1.0, 5.0], z) < 0.9)
    True
    """
    latents, factors = _check_square(latents, factors)
    sampling = sampling_of(latents, factors, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        z_mean, s_mean = z[fit].mean(axis=0), factors[fit].mean(axis=0)
        centred = z[fit] - z_mean
        rotation, strength = orthogonal_procrustes(centred, factors[fit] - s_mean)
        scale = strength / max(float(np.square(centred).sum()), np.finfo(float).tiny)
        return _mean_r2((z[test] - z_mean) @ rotation * scale + s_mean, factors, test)

    meaning = Meaning(
        f"the factors up to {UP_TO['orthogonal']}, with one scale and a shift",
        "which latent is which factor: any rotation scores the same",
    )
    return scored(measure, latents, meaning, sampling)


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
    invariances are those of :func:`orthogonal_r2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.regression import orthogonality_error
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> float(round(orthogonality_error(3 * z[:, ::-1] + 1, z), 6))
    0.0
    >>> float(round(orthogonality_error(z * [1.0, 3.0], z), 6))
    0.5
    """
    latents, factors = _check_square(latents, factors)
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


def _check_square(latents: Any, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    z, s = check_pair(latents, factors)
    if z.shape[1] != s.shape[1]:
        raise DemixError(
            f"A rotation needs as many latents as factors, but got {z.shape[1]} and {s.shape[1]}; "
            "use affine_r2."
        )
    return z, s


def _mean_r2(predicted: np.ndarray, factors: np.ndarray, test: np.ndarray) -> Statistic:
    r2 = r2_of(factors[test] - predicted, factors[test])
    return Statistic(test, lambda weights: mean_of(r2(weights)))


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
