"""Scores by regression: affine and orthogonal maps from latents to factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import LinearRegression

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.held import Held, explained, halves, mean_of, scored, shuffled
from demix.metrics.score import Score


def affine_r2(latents: Any, factors: Any, *, seed: int = 0) -> Score:
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
    latents, factors = check_pair(latents, factors)
    fit, test = halves(len(latents), seed)

    def measure(z: np.ndarray) -> Held:
        predicted = LinearRegression().fit(z[fit], factors[fit]).predict(z[test])
        r2 = explained(factors[test] - predicted, factors[test])
        return Held(len(test), lambda weights: mean_of(r2(weights)))

    return scored(
        measure(latents),
        lambda: measure(shuffled(latents, seed)),
        seed=seed,
        certifies="the factors up to an affine map",
        leaves_open="which latent is which factor, and any mixing of them",
    )


def orthogonal_r2(latents: Any, factors: Any, *, seed: int = 0) -> Score:
    r"""Return the held-out :math:`R^2` of the best rotation, with one scale and a shift.

    Orthogonal Procrustes on one half of the samples, scored on the other. 1 means identified up
    to an orthogonal map (Theorem 2), the common scale being the model's radius.

    Parameters
    ----------
    latents, factors : array (N, n)
        As many latents as factors.
    seed : int
        Seed of the split, of the shuffled baseline and of the interval.

    Returns
    -------
    Score
        Invariant to rotations, reflections, shifts and one common scale of the latents.

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
    latents, factors = check_pair(latents, factors)
    if latents.shape[1] != factors.shape[1]:
        raise DemixError(
            "A rotation needs as many latents as factors, but got "
            f"{latents.shape[1]} and {factors.shape[1]}; use affine_r2."
        )
    fit, test = halves(len(latents), seed)

    def measure(z: np.ndarray) -> Held:
        z_mean, s_mean = z[fit].mean(axis=0), factors[fit].mean(axis=0)
        centred = z[fit] - z_mean
        rotation, strength = orthogonal_procrustes(centred, factors[fit] - s_mean)
        scale = strength / max(float(np.square(centred).sum()), np.finfo(float).tiny)
        predicted = (z[test] - z_mean) @ rotation * scale + s_mean
        r2 = explained(factors[test] - predicted, factors[test])
        return Held(len(test), lambda weights: mean_of(r2(weights)))

    return scored(
        measure(latents),
        lambda: measure(shuffled(latents, seed)),
        seed=seed,
        certifies="the factors up to a rotation or reflection, with one scale and a shift",
        leaves_open="which latent is which factor: any rotation scores the same",
    )
