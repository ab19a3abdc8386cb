"""Scores by the gap between the best and the second best latent of each factor."""

from collections.abc import Callable
from typing import Any

import numpy as np

from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.information import binned_information
from demix.metrics.score import PICKED, SLOW, Meaning, Score, scored
from demix.metrics.statistic import Statistic, Values, mean_of, over, r2_of, unit_columns


def mutual_information_gap(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the mutual information gap (MIG; Chen et al. 2018, Section 4).

    .. math:: \frac{1}{n} \sum_i \frac{1}{H(s_i)}
              \left( I(s_i; z_{j(i)}) - \max_{j \ne j(i)} I(s_i; z_j) \right)

    with the latent :math:`j(i)` of the most information on factor i. Information is counted in
    bins that hold equally many samples, 20 for 2000 samples or more, and corrected for its bias;
    pairs that a G-test does not distinguish from independent ones share none.

    Invariant to the order of the latents and to monotone maps of each. Parameters are those of
    :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.gaps import mutual_information_gap
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> float(round(mutual_information_gap(-np.exp(z[:, ::-1]), z), 6))
    1.0
    >>> float(round(mutual_information_gap(np.hstack([z, z]), z), 6))
    0.0
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> Statistic:
        information = binned_information(z, true, sampling.times)

        def gap(weights: np.ndarray) -> Values:
            shared, entropy = information.of(weights)
            return mean_of(_gap(shared) / entropy)

        return Statistic(np.arange(len(z)), gap)

    meaning = Meaning(
        "each factor a function of one latent, up to the width of a bin, and of no other",
        "any invertible map of each, latents that depend on several factors at once",
        needs=PICKED,
    )
    return scored(measure, latents, meaning, sampling, nulls=SLOW)


def separated_predictability(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the separated attribute predictability (SAP; Kumar et al. 2018, Section 3).

    The gap between the two latents that predict a factor best, each on its own, the mean over
    factors. Continuous factors are predicted by linear regression and scored by :math:`R^2`.
    Categories are predicted by a linear classifier, that of the nearest class mean along the
    latent, and scored by balanced accuracy; to reach from 0 to 1 like :math:`R^2`, it is rescaled
    by its chance level 1/C for C classes, so that the published form is (1 - 1/C) times ours.
    Fitted on one half of the samples and scored on the other.

    Invariant to order, sign, scale and shift of the latents. Parameters are those of
    :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.gaps import separated_predictability
    >>> z = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> bool(separated_predictability(3 * z[:, ::-1], z) > 0.99)
    True
    >>> float(round(separated_predictability(np.hstack([z, z]), z), 6))
    0.0
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        alone = [
            (_class_scores if true.categorical[i] else _number_scores)(z, true, i, fit, test)
            for i in range(true.number)
        ]

        def gap(weights: np.ndarray) -> Values:
            scores = np.stack([np.clip(of(weights), 0, None) for of in alone], axis=1)
            return mean_of(_gap(scores))

        return Statistic(test, gap)

    meaning = Meaning(
        "each factor linear in one latent (a category: split by it), and in no other",
        "latents that depend on several factors at once, nonlinear traces in others",
        needs=PICKED,
    )
    return scored(measure, unit_columns(latents), meaning, sampling)


def _gap(strength: np.ndarray) -> np.ndarray:
    """Return the largest less the second largest along the last axis; of one, that one."""
    if strength.shape[-1] == 1:
        return strength[..., 0]
    best = np.partition(strength, -2, axis=-1)
    return np.asarray(best[..., -1] - best[..., -2])


def _number_scores(
    latents: np.ndarray, factors: Factors, column: int, fit: np.ndarray, test: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return how each latent alone predicts a number, ``(B, m)`` under weights."""
    target = unit_columns(factors.values[:, [column]])
    z_mean, s_mean = latents[fit].mean(axis=0), target[fit].mean()
    moved = latents[fit] - z_mean
    slope = over(moved.T @ (target[fit, 0] - s_mean), np.square(moved).sum(axis=0))
    error = target[test] - s_mean - (latents[test] - z_mean) * slope
    return r2_of(error, np.broadcast_to(target[test], error.shape))


def _class_scores(
    latents: np.ndarray, factors: Factors, column: int, fit: np.ndarray, test: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return how each latent alone predicts a class, ``(B, m)`` under weights."""
    classes = factors.classes[:, column]
    kinds = np.unique(classes[fit])
    means = np.stack([latents[fit][classes[fit] == kind].mean(axis=0) for kind in kinds])
    _, place, counts = np.unique(classes[test], return_inverse=True, return_counts=True)
    # Each class counts the same, however many samples it has.
    weight = (1 / counts)[place][:, None]
    columns = zip(latents[test].T, means.T, strict=True)
    nearest = [np.abs(z[:, None] - mean).argmin(axis=1) for z, mean in columns]
    right = kinds[np.stack(nearest, axis=1)] == classes[test][:, None]
    chance = 1 / max(len(counts), 2)

    def balanced(weights: np.ndarray) -> np.ndarray:
        accuracy = over(weights @ (weight * right), weights @ weight)
        return np.asarray((accuracy - chance) / (1 - chance))

    return balanced
