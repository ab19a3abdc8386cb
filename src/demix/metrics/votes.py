"""Scores by guessing which factor was held fixed: those of beta-VAE and FactorVAE.

Both papers draw new samples with one factor fixed. From a table of observations, samples that
agree in a factor take their place: they are sorted by the factor, equal values in random order, and
cut into runs of up to 64, of one category each. Along a continuous factor a run spans a small part
of the range (1/78 of the samples, for 10 000). Runs share no sample, so that those that score are
as good as independent, and drawing them anew gives an interval.
"""

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np

from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.readout import class_shares
from demix.metrics.score import APART, SLOW, Meaning, Score, scored
from demix.metrics.statistic import Statistic, mean_of, over, unit_columns

_RUN = 64


def beta_vae_score(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the beta-VAE score (Higgins et al. 2017, Section 3).

    A linear classifier guesses which factor was fixed from :math:`|z - z'|`, the mean over pairs
    of samples that agree in that factor; its accuracy on samples that it was not fitted to. Chance
    is 1/n for n factors.

    Invariant to order, sign, scale and shift of the latents. Parameters are those of
    :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.votes import beta_vae_score
    >>> z = np.random.default_rng(0).uniform(size=(2000, 3))
    >>> score = beta_vae_score(z[:, [2, 0, 1]], z)
    >>> float(score), bool(score.baseline < 0.6)
    (1.0, True)
    """

    def guess(seen: np.ndarray, fixed: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        both = [np.abs(z - np.roll(z, 1, axis=1)).mean(axis=1) for z in (seen, fresh)]
        fit, test = np.split(np.arange(len(fixed)), [len(seen)])
        return class_shares(np.vstack(both), fixed, fit, test).argmax(axis=1)

    meaning = Meaning(
        "factors that differ in which latents they leave unchanged",
        "which latent is which factor: most mixings of them score the same",
        needs=APART,
    )
    return _guessed(guess, meaning, latents, factors, categorical, blocks, seed)


def factor_vae_score(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the FactorVAE score (Kim & Mnih 2018, Section 4).

    The latent that varies least, relative to its variance over all samples, votes for the factor
    that was fixed: for the one for which it was least most often in one half of the samples. The
    score is the accuracy in the other half; chance is 1/n for n factors. Latents that do not vary
    have no vote. Parameters and invariances are those of :func:`beta_vae_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.votes import factor_vae_score
    >>> z = np.random.default_rng(0).uniform(size=(2000, 3))
    >>> score = factor_vae_score(z[:, [2, 0, 1]], z)
    >>> float(score), bool(score.baseline < 0.6)
    (1.0, True)
    """

    def guess(seen: np.ndarray, fixed: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        known = fixed[: len(seen)]
        votes = np.zeros((seen.shape[2], int(fixed.max()) + 1))
        np.add.at(votes, (seen.var(axis=1).argmin(axis=1), known), 1)
        # Factors with few runs count as much as others.
        votes /= np.maximum(np.bincount(known, minlength=votes.shape[1]), 1)
        return np.asarray(votes.argmax(axis=1)[fresh.var(axis=1).argmin(axis=1)])

    meaning = Meaning(
        "for each factor a latent that varies least when that factor is fixed",
        "any map of each latent, its dependence on other factors, latents beyond the first",
        needs=APART,
    )
    return _guessed(guess, meaning, latents, factors, categorical, blocks, seed)


def _guessed(
    guess: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    meaning: Meaning,
    latents: Any,
    factors: Any,
    categorical: Columns,
    blocks: Blocks,
    seed: int,
) -> Score:
    """Return the accuracy of guesses from the runs of one half for those of the other."""
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    moved = unit_columns(latents)
    moved = moved[:, moved.any(axis=0)]
    scaled = moved / moved.std(axis=0)
    (seen, known), (fresh, asked) = (_runs(true, rows, seed) for rows in sampling.halves())
    fixed, members = np.concatenate([known, asked]), np.eye(true.number)[asked]

    def measure(z: np.ndarray) -> Statistic:
        # Without a latent that varies no guess is right.
        guessed = guess(z[seen], fixed, z[fresh]) if z.shape[1] else np.full(len(fresh), -1)
        right = members * (guessed == asked)[:, None]
        return Statistic(
            fresh[:, 0], lambda weights: mean_of(over(weights @ right, weights @ members))
        )

    return scored(measure, scaled, meaning, sampling, nulls=SLOW)


def _runs(factors: Factors, rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return runs ``(V, L)`` of rows that agree in a factor, and which factor it is, ``(V,)``."""
    length = min(_RUN, isqrt(len(rows)))
    for column in np.flatnonzero(factors.categorical).tolist():
        # At least one category is as large as the mean.
        length = min(length, len(rows) // factors.classes_of(column))
    length = max(length, 2)
    random = np.random.default_rng([seed, 6])
    runs, fixed = [], []
    for column in range(factors.number):
        values = factors.values[rows, column]
        order = np.lexsort((random.uniform(size=len(rows)), values))
        pieces = [order]
        if factors.categorical[column]:
            pieces = np.split(order, np.flatnonzero(np.diff(values[order])) + 1)
        for piece in pieces:
            number = len(piece) // length
            # Neighbours in a run must not be nearer to each other than any other two.
            within = random.permuted(piece[: number * length].reshape(number, length), axis=1)
            runs.append(rows[within])
            fixed.append(np.full(number, column))
    return np.concatenate(runs), np.concatenate(fixed)
