"""DCI: disentanglement, completeness and informativeness."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.score import SLOWEST, Meaning, Score, scored_each
from demix.metrics.statistic import OfWeights, Statistic, Values, mean_of, over, r2_of, unit_columns

_TREES = 30
_LEAF = 5
_LEVEL = 0.01


class DCI(NamedTuple):
    """The three scores of :func:`dci`."""

    disentanglement: Score
    completeness: Score
    informativeness: Score


def dci(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> DCI:
    r"""Return disentanglement, completeness and informativeness (Eastwood & Williams 2018).

    Forests of trees predict each of n factors from all m latents. With the importance
    :math:`R_{ij}` of latent j for factor i, scaled to sum to 1 for each factor,

    .. math::
        D_j = 1 + \sum_i P_{ij} \log_n P_{ij}, \quad P_{ij} = R_{ij} / \sum_i R_{ij}; \qquad
        C_i = 1 + \sum_j R_{ij} \log_m R_{ij}

    Disentanglement is the mean of :math:`D_j` weighted by the importance
    :math:`\sum_i R_{ij}` of the latents, completeness the mean of :math:`C_i`; factors on which
    no latent depends count 0. Informativeness is the mean of :math:`R^2` of continuous factors and
    accuracy of categories.

    Extremely randomised trees, which see ranks of latents, are fitted on one half of the samples.
    The importance of a latent is the squared error that shuffling it adds on the other half
    (Breiman 2001), where it is significantly above 0 (level 1 %, corrected for all pairs).

    Invariant to monotone maps of each latent and, up to the randomness of trees, to their order.
    Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.dci import dci
    >>> z = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> [round(float(score), 1) for score in dci(np.hstack([z, z]), z)]
    [1.0, 0.5, 1.0]
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> list[Statistic]:
        ranks = rankdata(z, axis=0) / len(z)
        forests = [_forest(ranks, true, i, seed) for i in range(true.values.shape[1])]
        added = np.stack([errors for errors, _ in forests], axis=1)
        terms = added.reshape(len(added), -1)
        scatter = terms.std(axis=0) * (sampling.times / len(terms)) ** 0.5
        matters = terms.mean(axis=0) > norm.isf(_LEVEL / terms.shape[1]) * scatter

        def importance(weights: np.ndarray) -> np.ndarray:
            raw = np.clip(weights @ terms, 0, None) * matters
            raw = raw.reshape(len(weights), *added.shape[1:])
            return over(raw, raw.sum(axis=2, keepdims=True))

        scores = (
            lambda weights: disentanglement_of(importance(weights)),
            lambda weights: mean_of(completeness_of(importance(weights))),
            lambda weights: mean_of(np.hstack([accuracy(weights) for _, accuracy in forests])),
        )
        return [Statistic(true.test, score) for score in scores]

    meanings = [Meaning.of(f"dci_{name}") for name in DCI._fields]
    return DCI(*scored_each(measure, latents, meanings, sampling, nulls=SLOWEST))


def disentanglement_of(importance: np.ndarray) -> Values:
    """Return disentanglement ``(B,)`` and that of each latent from ``R (B, n, m)``."""
    strength = importance.sum(axis=1)
    parts = completeness_of(np.moveaxis(importance, 1, 2))
    return over((parts * strength).sum(axis=1), strength.sum(axis=1)), parts


def completeness_of(importance: np.ndarray) -> np.ndarray:
    """Return the completeness ``(B, n)`` of each factor from ``R (B, n, m)``, 0 without any."""
    total = importance.sum(axis=-1, keepdims=True)
    shares = over(importance, total)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=-1)
    most = np.log(max(importance.shape[-1], 2))
    return np.where(total[..., 0] > 0, 1 - entropy / most, 0.0)


def _forest(
    ranks: np.ndarray, factors: Factors, column: int, seed: int
) -> tuple[np.ndarray, OfWeights]:
    """Predict one factor from ranks of the latents by a forest.

    Return what shuffling each latent adds to the squared error of test samples, ``(N, m)``, and
    the :math:`R^2`, or the accuracy for categories, ``(B, 1)`` under weights.
    """
    # Imported here: it takes half a second, for which every command would wait.
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    fit, test = factors.fit, factors.test
    categorical, classes = factors.categorical[column], factors.classes[:, column]
    target = classes if categorical else unit_columns(factors.values[:, column])
    model = (ExtraTreesClassifier if categorical else ExtraTreesRegressor)(
        n_estimators=_TREES,
        min_samples_leaf=min(_LEAF, max(1, len(fit) // 20)),  # much smaller data need finer ones
        max_features=1.0,
        random_state=int(np.random.default_rng([seed, 4]).integers(2**31)),  # of 32 bits
    ).fit(ranks[fit], target[fit])
    true = np.eye(factors.classes_of(column))[classes[test]] if categorical else target[test, None]

    def predict(rows: np.ndarray) -> np.ndarray:
        if not categorical:
            return np.asarray(model.predict(rows))[:, None]
        shares = np.zeros((len(rows), true.shape[1]))
        shares[:, model.classes_] = model.predict_proba(rows)
        return shares

    predicted, width = predict(ranks[test]), ranks.shape[1]
    other = np.random.default_rng([seed, 5]).permutation(test)
    stacked = np.repeat(ranks[test][None], width, axis=0)
    for j in range(width):
        stacked[j, :, j] = ranks[other, j]
    moved = predict(stacked.reshape(-1, width)).reshape(width, len(test), -1)
    errors = np.square(moved - true).sum(axis=2)
    added = (errors - np.square(predicted - true).sum(axis=1)).T
    if not categorical:
        return added, r2_of(true - predicted, true)
    right = (predicted.argmax(axis=1) == classes[test])[:, None]
    return added, lambda weights: weights @ right
