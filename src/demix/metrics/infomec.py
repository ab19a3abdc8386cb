"""InfoMEC: modularity, compactness and explicitness in terms of information."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression

from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.information import ONE_FACTOR_EACH, nearest_information
from demix.metrics.readout import class_shares
from demix.metrics.score import ANY_MIXING, APART, SLOW, Meaning, Score, scored_each
from demix.metrics.statistic import Statistic, Values, mean_of, over, r2_of, unit_columns


class InfoMEC(NamedTuple):
    """The three scores of :func:`infomec`."""

    modularity: Score
    compactness: Score
    explicitness: Score


def infomec(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> InfoMEC:
    r"""Return InfoModularity, InfoCompactness and InfoExplicitness (Hsu et al. 2023).

    With the normalised information :math:`R_{ij} = I(s_i; z_j) / H(s_i)` of n factors and of those
    m latents that depend on some factor,

    .. math::
        \mathrm{InfoM} = \frac{\frac{1}{m} \sum_j \frac{\max_i R_{ij}}{\sum_i R_{ij}}
                         - \frac{1}{n}}{1 - \frac{1}{n}}, \qquad
        \mathrm{InfoC} = \frac{\frac{1}{n} \sum_i \frac{\max_j R_{ij}}{\sum_j R_{ij}}
                         - \frac{1}{m}}{1 - \frac{1}{m}}

    and InfoE, the share of the uncertainty about a factor that a linear map of the latents removes
    (predictive V-information, Xu et al. 2020; the mean over factors),

    .. math:: 1 - H_V(s_i \mid z) / H_V(s_i)

    For categories V are logistic regressions and H is the cross-entropy; for continuous factors V
    are linear Gaussian models of one variance, and the share is :math:`R^2`. Both are fitted on
    one half of the samples and scored on the other, where the paper does both on all.

    Information comes from nearest neighbours (Ross 2014, as in the paper, with 10) between each
    latent and the categories of a factor, or its equally filled bins. The paper leaves out latents
    of small range; here, those that depend on no factor by a G-test are left out, so that their
    scale does not matter.

    Modularity and compactness are invariant to order and monotone maps of the latents, explicitness
    to invertible affine maps. Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.infomec import infomec
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> [float(round(score, 3)) for score in infomec(-z[:, ::-1], z)]
    [1.0, 1.0, 1.0]
    >>> twice = infomec(np.hstack([z, z]), z)
    >>> round(twice.modularity, 2), round(twice.compactness, 2), round(twice.explicitness, 2)
    (1.0, 0.33, 1.0)
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> list[Statistic]:
        information = nearest_information(z, true, seed, sampling.times)
        removed = [_uncertainty_removed(z, true, i, fit, test) for i in range(true.number)]

        def normalised(weights: np.ndarray) -> np.ndarray:
            shared, entropy = information.of(weights)
            return np.asarray(shared / entropy[:, :, None])

        def modular(weights: np.ndarray) -> Values:
            parts, active = infomodularity_of(normalised(weights))
            return over((parts * active).sum(axis=1), active.sum(axis=1)), parts

        def compact(weights: np.ndarray) -> Values:
            return mean_of(infocompactness_of(normalised(weights)))

        def explicit(weights: np.ndarray) -> Values:
            return mean_of(np.hstack([of(weights) for of in removed]))

        rows = np.arange(len(z))
        return [Statistic(rows, modular), Statistic(rows, compact), Statistic(test, explicit)]

    meanings = [
        ONE_FACTOR_EACH,
        Meaning(
            "factors that each show in one latent only",
            "any map of each; latents that depend on several factors at once",
            needs=APART,
        ),
        Meaning("the factors up to a linear read-out", ANY_MIXING),
    ]
    return InfoMEC(*scored_each(measure, latents, meanings, sampling, nulls=SLOW))


def infomodularity_of(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms ``(..., m)`` of latents from ``R (..., n, m)``, and which of them count."""
    total, number = information.sum(axis=-2), information.shape[-2]
    active = total > 0
    return np.where(active, _above(over(information.max(axis=-2), total), number), 0.0), active


def infocompactness_of(information: np.ndarray) -> np.ndarray:
    """Return the terms ``(..., n)`` of factors from ``R (..., n, m)``."""
    total = information.sum(axis=-1)
    width = (information.sum(axis=-2) > 0).sum(axis=-1)[..., None]
    return np.where(total > 0, _above(over(information.max(axis=-1), total), width), 0.0)


def _above(share: np.ndarray, number: Any) -> np.ndarray:
    """Scale a share of at least ``1 / number`` to reach from 0 to 1; a single one has it all."""
    alone = np.asarray(number) <= 1
    least = 1 / np.where(alone, 2, number)
    return np.where(alone, 1.0, np.clip((share - least) / (1 - least), 0, 1))


def _uncertainty_removed(
    latents: np.ndarray, factors: Factors, column: int, fit: np.ndarray, test: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the share ``(B, 1)`` that a linear read-out removes, under weights."""
    if not factors.categorical[column]:
        z, target = unit_columns(latents), unit_columns(factors.values[:, [column]])
        predicted = LinearRegression().fit(z[fit], target[fit]).predict(z[test])
        return r2_of(target[test] - predicted, target[test])
    classes = factors.classes[:, column]
    # Half a sample more of each class, so that one that was never seen is not impossible.
    counts = np.bincount(classes[fit], minlength=factors.classes_of(column)) + 0.5
    prior, little = counts / counts.sum(), 1 / len(fit)
    shares = (1 - little) * class_shares(latents, classes, fit, test) + little * prior
    left = -np.log(shares[np.arange(len(test)), classes[test]])[:, None]
    whole = -np.log(prior[classes[test]])[:, None]
    return lambda weights: 1 - over(weights @ left, weights @ whole)
