"""Scores by matching: one latent for each factor."""

from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.blocks import Blocks, sampling_of
from demix.metrics.score import PICKED, Meaning, Score, scored
from demix.metrics.statistic import Statistic, mean_of, over, unit_columns
from demix.theory.setting import UP_TO

Method = Literal["pearson", "spearman"]


def mean_correlation(
    latents: Any, factors: Any, *, method: Method = "pearson", blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the mean correlation coefficient (MCC) of factors and their matched latents.

    Each factor gets a latent of its own, the ``assignment`` of the score, so that the sum of
    :math:`|r|` is largest (Hungarian algorithm on one random half of the samples); the mean of
    :math:`|r|` is taken on the other half. A factor without a latent counts 0. 1 means identified
    up to order, sign, scale and shift (Theorem 6, Table 2), or with Spearman up to any monotone map
    of each.

    Parameters are those of :func:`demix.affine_r2`, and the ``method``.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import mean_correlation
    >>> z = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> score = mean_correlation(-3 * z[:, ::-1], z)
    >>> float(round(score, 6)), score.assignment.tolist()
    (1.0, [1, 0])
    """
    latents, factors = check_pair(latents, factors)
    sampling = sampling_of(latents, factors, blocks, seed)
    fit, test = sampling.halves()
    size = len(test) ** 0.5
    to_fit, true = _standardise(factors[fit], method), size * _standardise(factors[test], method)

    def assign(z: np.ndarray) -> np.ndarray:
        strength = np.abs(np.clip(to_fit.T @ _standardise(z[fit], method), -1, 1))
        rows, columns = linear_sum_assignment(strength, maximize=True)
        chosen = np.full(factors.shape[1], -1)
        chosen[rows] = columns
        return chosen

    def measure(z: np.ndarray) -> Statistic:
        chosen = assign(z)
        found = size * _standardise(z[test], method)[:, chosen]
        terms = np.hstack([found, true, np.square(found), np.square(true), found * true])

        def correlation(weights: np.ndarray) -> np.ndarray:
            z_mean, s_mean, z_square, s_square, product = np.split(weights @ terms, 5, axis=1)
            spread = (z_square - np.square(z_mean)) * (s_square - np.square(s_mean))
            r = over(product - z_mean * s_mean, np.sqrt(np.clip(spread, 0, None)))
            return np.where(chosen >= 0, np.clip(np.abs(r), 0, 1), 0.0)

        return Statistic(test, lambda weights: mean_of(correlation(weights)))

    by_rank = method == "spearman"
    left_open = "order, and a monotone map of each dimension" if by_rank else UP_TO["permutation"]
    meaning = Meaning(f"the factors up to {left_open}", left_open, needs=PICKED)
    score = scored(measure, latents, meaning, sampling)
    score.assignment = assign(latents)
    return score


def correlate(latents: np.ndarray, factors: np.ndarray, method: Method = "pearson") -> np.ndarray:
    """Return the correlation of each factor with each latent, ``(n, m)``; 0 for a constant."""
    return np.clip(_standardise(factors, method).T @ _standardise(latents, method), -1, 1)


def _standardise(x: np.ndarray, method: Method) -> np.ndarray:
    """Return columns of mean 0 and norm 1, or of zeros where they do not vary."""
    if method not in ("pearson", "spearman"):
        raise DemixError(f'method must be "pearson" or "spearman", but got {method!r}.')
    ranked = rankdata(x, axis=0) if method == "spearman" else x
    moved = unit_columns(ranked)
    return over(moved, np.broadcast_to(np.linalg.norm(moved, axis=0), moved.shape))
