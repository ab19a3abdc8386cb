"""Scores by guessing: factors from latents, and which factor was held fixed."""

import warnings
from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from demix._support.errors import DemixError
from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.score import SLOW, SLOWEST, Meaning, Score, scored
from demix.metrics.statistic import OfWeights, Statistic, Values, mean_of, over, r2_of, unit_columns

_STRENGTH = 1e4  # nearly no penalty, enough for a finite optimum where classes can be separated
_RUN = 64


def linear_accuracy(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    """Return the held-out accuracy of linear classifiers from latents to categories.

    Multinomial logistic regression, fitted on one half of the samples and scored on the other, the
    mean over categorical factors. Invariant to invertible affine maps of the latents. Chance is
    about the share of the most frequent category. Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import linear_accuracy
    >>> shape = np.random.default_rng(0).choice(["cube", "cone", "ball"], size=600)
    >>> z = np.stack([shape == "cube", shape == "cone"], axis=1) @ [[1.0, 2.0], [3.0, 1.0]]
    >>> float(linear_accuracy(z, shape[:, None]))
    1.0
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    columns = np.flatnonzero(true.categorical)
    if len(columns) == 0:
        raise DemixError(
            "linear_accuracy needs a categorical factor, but all columns are numbers; list some as "
            "categorical, or use affine_r2."
        )

    def measure(z: np.ndarray) -> Statistic:
        shares = (class_shares(z, true.classes[:, i], true.fit, true.test) for i in columns)
        guessed = [share.argmax(axis=1) for share in shares]
        right = np.stack(guessed, axis=1) == true.classes[true.test][:, columns]
        return Statistic(true.test, lambda weights: mean_of(weights @ right))

    return scored(measure, latents, Meaning.of("linear_accuracy"), sampling, nulls=SLOW)


def explicitness(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    """Return the explicitness (Ridgeway & Mozer 2018, Section 3).

    For each category, the area under the ROC curve (AUC) of a logistic regression for it against
    all others; the mean over categories, then over factors. A continuous factor stands for three
    pairs of categories, below and above its quartiles: no linear map separates bins in the middle
    of a range from both sides of it. Fitted on one half of the samples and scored on the other;
    chance is 1/2. The interval is that of the placements of DeLong et al. (1988).

    Invariant to invertible affine maps; parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import explicitness
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> bool(explicitness(z @ [[1.0, 2.0], [3.0, -1.0]], z) > 0.999)
    True
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> Statistic:
        areas = [_areas(z, true, i) for i in range(true.values.shape[1])]

        def area(weights: np.ndarray) -> Values:
            parts = [np.mean([of(weights) for of in some], axis=0) for some in areas]
            return mean_of(np.stack(parts, axis=1))

        return Statistic(true.test, area)

    return scored(measure, latents, Meaning.of("explicitness"), sampling, nulls=SLOWEST)


def separated_predictability(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the separated attribute predictability (SAP; Kumar et al. 2018, Section 3).

    The gap between the two latents that predict a factor best, each on its own, the mean over
    factors; fitted on one half of the samples and scored on the other. Continuous factors are
    predicted by linear regression and scored by :math:`R^2`. Categories are predicted by the
    nearest class mean along the latent and scored by balanced accuracy, rescaled by its chance
    level 1/C for C classes to reach from 0 to 1: the published form is (1 - 1/C) times ours.

    Invariant to order, sign, scale and shift; parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import separated_predictability
    >>> z = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> bool(separated_predictability(3 * z[:, ::-1], z) > 0.99)
    True
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> Statistic:
        alone = [
            (_class_scores if true.categorical[i] else _number_scores)(z, true, i)
            for i in range(true.values.shape[1])
        ]

        def gap(weights: np.ndarray) -> Values:
            scores = np.stack([np.clip(of(weights), 0, None) for of in alone], axis=1)
            return mean_of(gap_of(scores))

        return Statistic(true.test, gap)

    meaning = Meaning.of("separated_predictability")
    return scored(measure, unit_columns(latents), meaning, sampling)


def beta_vae_score(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the beta-VAE score (Higgins et al. 2017, Section 3).

    A linear classifier guesses which factor was fixed from :math:`|z - z'|`, the mean over pairs
    of samples that agree in that factor; its accuracy on samples that it was not fitted to. Chance
    is 1/n for n factors. The paper draws samples with one factor fixed. From a table, samples that
    agree in a factor take their place: sorted by the factor, equal values in random order, and cut
    into runs of up to 64, of one category each.

    Invariant to order, sign, scale and shift; parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import beta_vae_score
    >>> z = np.random.default_rng(0).uniform(size=(2000, 3))
    >>> float(beta_vae_score(z[:, [2, 0, 1]], z))
    1.0
    """

    def guess(seen: np.ndarray, fixed: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        both = [np.abs(z - np.roll(z, 1, axis=1)).mean(axis=1) for z in (seen, fresh)]
        fit, test = np.split(np.arange(len(fixed)), [len(seen)])
        return class_shares(np.vstack(both), fixed, fit, test).argmax(axis=1)

    return _guessed("beta_vae_score", guess, latents, factors, categorical, blocks, seed)


def factor_vae_score(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the FactorVAE score (Kim & Mnih 2018, Section 4).

    The latent that varies least, relative to its variance over all samples, votes for the factor
    that was fixed: for the one for which it was least most often in one half of the samples. The
    score is the accuracy in the other half. Latents that do not vary have no vote. Runs, chance,
    parameters and invariances are those of :func:`beta_vae_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import factor_vae_score
    >>> z = np.random.default_rng(0).uniform(size=(2000, 3))
    >>> float(factor_vae_score(z[:, [2, 0, 1]], z))
    1.0
    """

    def guess(seen: np.ndarray, fixed: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        known = fixed[: len(seen)]
        votes = np.zeros((seen.shape[2], int(fixed.max()) + 1))
        np.add.at(votes, (seen.var(axis=1).argmin(axis=1), known), 1)
        # Factors with few runs count as much as others.
        votes /= np.maximum(np.bincount(known, minlength=votes.shape[1]), 1)
        return np.asarray(votes.argmax(axis=1)[fresh.var(axis=1).argmin(axis=1)])

    return _guessed("factor_vae_score", guess, latents, factors, categorical, blocks, seed)


def class_shares(
    latents: np.ndarray, classes: np.ndarray, fit: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Return the probability ``(len(test), C)`` of each class by logistic regression."""
    shares = np.zeros((len(test), int(classes.max()) + 1))
    seen = np.unique(classes[fit])
    if len(seen) == 1:
        shares[:, seen] = 1.0
    else:
        model, inputs = _fitted(latents, classes, fit, test)
        shares[:, model.classes_] = model.predict_proba(inputs)
    return shares


def _areas(latents: np.ndarray, factors: Factors, column: int) -> list[OfWeights]:
    """Return the area of each category of a factor, or of the part above each quartile."""
    values = factors.values[:, column]
    if factors.categorical[column]:
        sets = [values == kind for kind in range(factors.classes_of(column))]
    else:
        sets = [values > edge for edge in np.quantile(values, [0.25, 0.5, 0.75])]
    areas = []
    for among in sets:
        if all(0 < among[rows].sum() < len(rows) for rows in (factors.fit, factors.test)):
            model, inputs = _fitted(latents, among, factors.fit, factors.test)
            areas.append(area_of(model.decision_function(inputs), among[factors.test]))
    # A factor of which no category is in both halves is guessed by chance.
    return areas or [lambda weights: np.full(len(weights), 0.5)]


def area_of(scores: np.ndarray, among: np.ndarray) -> OfWeights:
    """Return the area under the ROC curve ``(B,)`` as a function of weights ``(B, N)``."""
    everyone = rankdata(scores)
    placement = np.empty(len(scores))
    for side, others in ((among, ~among), (~among, among)):
        placement[side] = (everyone[side] - rankdata(scores[side])) / others.sum()
    placement[~among] = 1 - placement[~among]
    whole = placement[among].mean()
    terms = np.stack([placement * among, among, placement * ~among, ~among], axis=1)

    def area(weights: np.ndarray) -> np.ndarray:
        inside, members, outside, others = (weights @ terms).T
        moved = over(inside, members) + over(outside, others) - whole
        # A draw without members or without others has no area.
        return np.where((members > 0) & (others > 0), np.clip(moved, 0, 1), whole)

    return area


def _fitted(
    latents: np.ndarray, classes: np.ndarray, fit: np.ndarray, test: np.ndarray
) -> tuple[LogisticRegression, np.ndarray]:
    """Return a logistic regression on standardised latents, and those of the test samples."""
    spread = latents[fit].std(axis=0)
    inputs = (latents - latents[fit].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps change no score
        model = LogisticRegression(C=_STRENGTH, max_iter=200).fit(inputs[fit], classes[fit])
    return model, inputs[test]


def gap_of(strength: np.ndarray) -> np.ndarray:
    """Return the largest less the second largest along the last axis; of one, that one."""
    if strength.shape[-1] == 1:
        return strength[..., 0]
    best = np.partition(strength, -2, axis=-1)
    return np.asarray(best[..., -1] - best[..., -2])


def _number_scores(latents: np.ndarray, factors: Factors, column: int) -> OfWeights:
    """Return how each latent alone predicts a number, ``(B, m)`` under weights."""
    fit, test = factors.fit, factors.test
    target = unit_columns(factors.values[:, [column]])
    z_mean, s_mean = latents[fit].mean(axis=0), target[fit].mean()
    moved = latents[fit] - z_mean
    slope = over(moved.T @ (target[fit, 0] - s_mean), np.square(moved).sum(axis=0))
    error = target[test] - s_mean - (latents[test] - z_mean) * slope
    return r2_of(error, np.broadcast_to(target[test], error.shape))


def _class_scores(latents: np.ndarray, factors: Factors, column: int) -> OfWeights:
    """Return how each latent alone predicts a class, ``(B, m)`` under weights."""
    fit, test = factors.fit, factors.test
    classes = factors.classes[:, column]
    kinds = np.unique(classes[fit])
    means = np.stack([latents[fit][classes[fit] == kind].mean(axis=0) for kind in kinds])
    _, place, counts = np.unique(classes[test], return_inverse=True, return_counts=True)
    weight = (1 / counts)[place][:, None]  # each class counts the same, whatever its size
    columns = zip(latents[test].T, means.T, strict=True)
    nearest = [np.abs(z[:, None] - mean).argmin(axis=1) for z, mean in columns]
    right = kinds[np.stack(nearest, axis=1)] == classes[test][:, None]
    chance = 1 / max(len(counts), 2)

    def balanced(weights: np.ndarray) -> np.ndarray:
        accuracy = over(weights @ (weight * right), weights @ weight)
        return np.asarray((accuracy - chance) / (1 - chance))

    return balanced


def _guessed(name: str, guess: Callable[..., np.ndarray], *given: Any) -> Score:
    """Return the accuracy of guesses from the runs of one half for those of the other."""
    latents, true, sampling = check_factors(*given)
    moved = unit_columns(latents)
    moved = moved[:, moved.any(axis=0)]
    scaled = moved / moved.std(axis=0)
    (seen, known), (fresh, asked) = (_runs(true, x, sampling.seed) for x in (true.fit, true.test))
    fixed, members = np.concatenate([known, asked]), np.eye(true.values.shape[1])[asked]

    def measure(z: np.ndarray) -> Statistic:
        # Without a latent that varies no guess is right.
        guessed = guess(z[seen], fixed, z[fresh]) if z.shape[1] else np.full(len(fresh), -1)
        right = members * (guessed == asked)[:, None]
        return Statistic(fresh[:, 0], lambda w: mean_of(over(w @ right, w @ members)))

    return scored(measure, scaled, Meaning.of(name), sampling, nulls=SLOW)


def _runs(factors: Factors, rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return runs ``(V, L)`` of rows that agree in a factor, and which factor it is, ``(V,)``."""
    length = min(_RUN, isqrt(len(rows)))  # runs share no row, so that they may be drawn anew
    for column in np.flatnonzero(factors.categorical).tolist():
        # At least one category is as large as the mean.
        length = min(length, len(rows) // factors.classes_of(column))
    length = max(length, 2)
    random = np.random.default_rng([seed, 6])
    runs, fixed = [], []
    for column in range(factors.values.shape[1]):
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
