"""Scores by maps: affine and orthogonal ones, distances, and one latent for each factor."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.blocks import Blocks, sampling_of
from demix.metrics.score import Meaning, Score, scored
from demix.metrics.statistic import (
    Statistic,
    Values,
    affine_prediction,
    mean_of,
    over,
    r2_of,
    unit_columns,
    units_of,
)

_ROUNDS = 8  # how often every sample is paired with another one
Method = Literal["pearson", "spearman"]


def affine_r2(latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0) -> Score:
    r"""Return the held-out :math:`R^2` of a linear regression from latents to factors.

    Fitted with an intercept on one random half of the samples and scored on the other, the mean
    over factors. 1 means identified up to an affine map (Theorem 5, Table 1).

    Parameters
    ----------
    latents : array (N, m)
        What an encoder recovered.
    factors : array (N, n)
        The true factors.
    blocks : None, int, "auto" or array (N,)
        Which rows are alike: none, those of blocks of this length in time order ("auto" takes it
        from their autocorrelation), or those of the same recording, subject or film, named by a
        number or a text for each row. Parts that fit and score hold whole blocks, and are a block
        apart in time; intervals redraw whole blocks, and chance keeps them together.
    seed : int
        Seed of the split, of the shuffled baseline and of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import affine_r2
    >>> z = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> float(round(affine_r2(z @ [[1.0, 2.0], [3.0, -1.0]] + 5, z), 6))
    1.0
    """
    latents, factors = map(unit_columns, check_pair(latents, factors))
    sampling = sampling_of(latents, factors, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        predicted = affine_prediction(z[fit], factors[fit], z[test])
        return _mean_r2(predicted, factors, test)

    return scored(measure, latents, Meaning.of("affine_r2"), sampling)


def orthogonal_r2(latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0) -> Score:
    r"""Return the held-out :math:`R^2` of the best rotation, with one scale and a shift.

    Orthogonal Procrustes on one half of the samples, scored on the other. 1 means identified up
    to an orthogonal map (Theorem 2); the common scale is the model's radius. There must be as many
    latents as factors. Parameters are those of :func:`affine_r2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import orthogonal_r2
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> float(round(orthogonal_r2(3 * z[:, ::-1], z), 6))
    1.0
    """
    latents, factors = check_square(latents, factors)
    sampling = sampling_of(latents, factors, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        z_mean, s_mean = z[fit].mean(axis=0), factors[fit].mean(axis=0)
        centred = z[fit] - z_mean
        rotation, strength = orthogonal_procrustes(centred, factors[fit] - s_mean)
        scale = strength / max(float(np.square(centred).sum()), np.finfo(float).tiny)
        return _mean_r2((z[test] - z_mean) @ rotation * scale + s_mean, factors, test)

    return scored(measure, latents, Meaning.of("orthogonal_r2"), sampling)


def isometry_error(latents: Any, factors: Any, *, blocks: Blocks = None, seed: int = 0) -> Score:
    r"""Return how far :math:`h = f \circ g` is from an isometry (Prop. 4).

    The minimisers of the loss keep distances up to a constant. Over random pairs of samples, with
    :math:`D = |z - z~|^2` of factors and :math:`D_h` of latents,

    .. math:: \min_c \; |D_h - c \, D|_2 \; / \; |D_h|_2

    is 0 for an isometry; smaller is better. The constant is fitted on half of the pairs. Parameters
    are those of :func:`affine_r2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.regression import isometry_error
    >>> z = np.random.default_rng(0).normal(size=(500, 3))
    >>> float(round(isometry_error(2 * z[:, ::-1] + 1, z), 6))
    0.0
    """
    # One unit for all columns, which the constant takes up.
    latents, factors = (x / units_of(x).max() for x in check_pair(latents, factors))
    sampling = sampling_of(latents, factors, blocks, seed)
    shifts = np.random.default_rng(seed).integers(1, len(latents), size=2 * _ROUNDS)

    def distances(x: np.ndarray) -> np.ndarray:
        pairs = (np.square(x - np.roll(x, shift, axis=0)).sum(axis=1) for shift in shifts)
        return np.stack(list(pairs))

    true = distances(factors)

    def measure(z: np.ndarray) -> Statistic:
        found = distances(z)
        fit, test = slice(_ROUNDS), slice(_ROUNDS, None)
        constant = (found[fit] * true[fit]).sum() / np.square(true[fit]).sum()
        both = np.square(found[test] - constant * true[test]), np.square(found[test])
        terms = np.stack([_of_samples(pairs, shifts[test]) for pairs in both], axis=1)

        def error(weights: np.ndarray) -> Values:
            off, size = np.clip(weights @ terms, 0, None).T
            values = np.where(size > 0, np.sqrt(over(off, size)), 1.0)  # equal ones keep nothing
            return values, values[:, None]

        return Statistic(np.arange(len(z)), error)

    return scored(measure, latents, Meaning.of("isometry_error"), sampling)


def _of_samples(pairs: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return terms ``(N,)`` of samples with the mean of pairs ``(rounds, N)`` and its variance."""
    # A mean over pairs varies twice as much with a sample as its own pairs (Hoeffding 1948).
    other = np.stack([np.roll(row, -shift) for row, shift in zip(pairs, shifts, strict=True)])
    own = (pairs + other).mean(axis=0) / 2
    return np.asarray(2 * own - own.mean())


def check_square(latents: Any, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return as many latents as factors; raise for other numbers of them."""
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

    by_rank = "_spearman" if method == "spearman" else ""
    score = scored(measure, latents, Meaning.of(f"mean_correlation{by_rank}"), sampling)
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
