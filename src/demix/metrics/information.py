"""Scores by mutual information: MIG, modularity, and InfoMEC."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma
from scipy.stats import chi2

from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, binned, check_factors
from demix.metrics.readout import class_shares, gap_of
from demix.metrics.score import SLOW, Meaning, Score, scored, scored_each
from demix.metrics.statistic import (
    OfWeights,
    Statistic,
    Values,
    affine_prediction,
    mean_of,
    over,
    r2_of,
    unit_columns,
)

_LEVEL = 0.01
_NEIGHBOURS = 10


def mutual_information_gap(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the mutual information gap (MIG; Chen et al. 2018, Section 4).

    .. math:: \frac{1}{n} \sum_i \frac{1}{H(s_i)}
              \left( I(s_i; z_{j(i)}) - \max_{j \ne j(i)} I(s_i; z_j) \right)

    with the latent :math:`j(i)` of the most information on factor i. Information is counted in up
    to 20 equally filled bins and corrected for its bias; pairs that a G-test does not distinguish
    from independent ones share none. Invariant to order and monotone maps of the latents.
    Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.information import mutual_information_gap
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> float(round(mutual_information_gap(-np.exp(z[:, ::-1]), z), 6))
    1.0
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> Statistic:
        information = binned_information(z, true, sampling.times)

        def gap(weights: np.ndarray) -> Values:
            shared, entropy = information.of(weights)
            return mean_of(gap_of(shared) / entropy)

        return Statistic(np.arange(len(z)), gap)

    return scored(measure, latents, Meaning.of("mutual_information_gap"), sampling, nulls=SLOW)


def modularity(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    r"""Return the modularity (Ridgeway & Mozer 2018, Section 3).

    With :math:`I_{ij}` the information of latent j about factor i, and the largest of them
    :math:`\theta_j = \max_i I_{ij}`,

    .. math:: \frac{1}{m} \sum_j \left( 1 -
              \frac{\sum_i I_{ij}^2 - \theta_j^2}{\theta_j^2 (n - 1)} \right)

    A latent that depends on no factor counts 0. Information, parameters and invariances are those
    of :func:`mutual_information_gap`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.information import modularity
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> float(round(modularity(np.hstack([z, np.zeros((2000, 1))]), z), 6))
    0.666667
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> Statistic:
        information = binned_information(z, true, sampling.times)
        of = information.of
        return Statistic(np.arange(len(z)), lambda w: mean_of(modularity_of(of(w)[0])))

    return scored(measure, latents, Meaning.of("modularity"), sampling, nulls=SLOW)


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
    m latents that depend on some factor by a G-test (in the paper: that have a large range),

    .. math::
        \mathrm{InfoM} = \frac{\frac{1}{m} \sum_j \frac{\max_i R_{ij}}{\sum_i R_{ij}}
                         - \frac{1}{n}}{1 - \frac{1}{n}}, \qquad
        \mathrm{InfoC} = \frac{\frac{1}{n} \sum_i \frac{\max_j R_{ij}}{\sum_j R_{ij}}
                         - \frac{1}{m}}{1 - \frac{1}{m}}, \qquad
        \mathrm{InfoE} = 1 - \frac{1}{n} \sum_i \frac{H_V(s_i \mid z)}{H_V(s_i)}

    Information comes from nearest neighbours (Ross 2014, with 10) between each latent and the
    categories of a factor, or its equally filled bins. InfoE is the share of uncertainty that a
    linear map removes (V-information, Xu et al. 2020): of the cross-entropy by logistic regression
    for categories, :math:`R^2` for continuous factors, fitted on one half of the samples and scored
    on the other, where the paper does both on all.

    Modularity and compactness are invariant to order and monotone maps of the latents, explicitness
    to invertible affine maps. Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.information import infomec
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> [round(score, 2) for score in infomec(np.hstack([z, z]), z)]
    [1.0, 0.33, 1.0]
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)

    def measure(z: np.ndarray) -> list[Statistic]:
        information = nearest_information(z, true, seed, sampling.times)
        removed = [_uncertainty_removed(z, true, i) for i in range(true.values.shape[1])]

        def normalised(weights: np.ndarray) -> np.ndarray:
            shared, entropy = information.of(weights)
            return np.asarray(shared / entropy[:, :, None])

        def modular(weights: np.ndarray) -> Values:
            parts, active = infomodularity_of(normalised(weights))
            return over((parts * active).sum(axis=1), active.sum(axis=1)), parts

        scores: tuple[Callable[[np.ndarray], Values], ...] = (
            modular,
            lambda weights: mean_of(infocompactness_of(normalised(weights))),
            lambda weights: mean_of(np.hstack([of(weights) for of in removed])),
        )
        rows = np.arange(len(z))
        return [*map(Statistic, (rows, rows, true.test), scores)]

    names = ("modularity", "infomec_compactness", "infomec_explicitness")
    meanings = [Meaning.of(name) for name in names]
    return InfoMEC(*scored_each(measure, latents, meanings, sampling, nulls=SLOW))


def modularity_of(information: np.ndarray) -> np.ndarray:
    """Return the modularity ``(..., m)`` of each latent from information ``(..., n, m)``."""
    square = np.square(information)
    largest = square.max(axis=-2)
    # With a single factor no latent can depend on another.
    rest = over(square.sum(axis=-2) - largest, largest * max(information.shape[-2] - 1, 1))
    return np.where(largest > 0, 1 - rest, 0.0)


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


def _uncertainty_removed(latents: np.ndarray, factors: Factors, column: int) -> OfWeights:
    """Return the share ``(B, 1)`` that a linear read-out removes, under weights."""
    fit, test = factors.fit, factors.test
    if not factors.categorical[column]:
        z, target = unit_columns(latents), unit_columns(factors.values[:, [column]])
        predicted = affine_prediction(z[fit], target[fit], z[test])
        return r2_of(target[test] - predicted, target[test])
    classes = factors.classes[:, column]
    # Half a sample more of each class, so that one that was never seen is not impossible.
    counts = np.bincount(classes[fit], minlength=factors.classes_of(column)) + 0.5
    prior, little = counts / counts.sum(), 1 / len(fit)
    shares = (1 - little) * class_shares(latents, classes, fit, test) + little * prior
    left = -np.log(shares[np.arange(len(test)), classes[test]])[:, None]
    whole = -np.log(prior[classes[test]])[:, None]
    return lambda weights: 1 - over(weights @ left, weights @ whole)


class Information(NamedTuple):
    r"""Estimates of :math:`I(s_i; z_j)` and :math:`H(s_i)` in nats, a term for each sample.

    Up to a constant, the log ratio :math:`\log p(s, z) / p(s) p(z)` is also the influence function
    of its mean, so that the bootstrap needs no new tables.
    """

    shared: np.ndarray  # (N, n * m), log ratios of each factor and latent
    entropy: np.ndarray  # (N, n), -log p(s_i)
    dependent: np.ndarray  # (n, m) of bool, by a G-test of level 1 %, corrected for all pairs

    def of(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the information ``(B, n, m)`` and the entropies ``(B, n)`` under weights."""
        shared = np.clip(weights @ self.shared, 0, None).reshape(-1, *self.dependent.shape)
        return shared * self.dependent, weights @ self.entropy  # else noise would look dependent


def binned_information(latents: np.ndarray, factors: Factors, times: float = 1.0) -> Information:
    r"""Estimate information from counts: categories, and equally filled bins of what is continuous.

    The correction of Miller (1955) subtracts :math:`(K_{sz} - K_s - K_z + 1) / 2N` nats from
    information, with the numbers of cells that are not empty, and adds :math:`(K_s - 1) / 2N` to
    entropies. If only one of ``times`` rows is independent, N is as many times smaller, and so is
    what the G-test compares with chance.
    """
    codes = np.stack([binned(column) for column in latents.T], axis=1)
    samples, number, width = len(factors), factors.values.shape[1], latents.shape[1]
    shared = np.empty((samples, number, width))
    entropy = np.empty((samples, number))
    dependent = np.zeros((number, width), dtype=bool)
    for i in range(number):
        s, kinds = factors.classes[:, i], factors.classes_of(i)
        share = np.bincount(s) / samples
        entropy[:, i] = -np.log(share)[s] + times * (kinds - 1) / (2 * samples)
        for j in range(width):
            z, bins = codes[:, j], int(codes[:, j].max()) + 1
            table = np.bincount(s * bins + z, minlength=kinds * bins).reshape(kinds, bins)
            by_chance = np.outer(share, table.sum(axis=0))
            ratio = np.log(np.where(table > 0, table, 1) / np.where(table > 0, by_chance, 1))
            excess = int((table > 0).sum()) - kinds - bins + 1
            shared[:, i, j] = ratio[s, z] - times * excess / (2 * samples)
            dependent[i, j] = _is_dependent(table, ratio, _LEVEL / dependent.size, times)
    return Information(shared.reshape(samples, -1), entropy, dependent)


def _is_dependent(table: np.ndarray, ratio: np.ndarray, level: float, times: float) -> bool:
    """Apply a G-test, with the correction of Williams (1976) for few counts."""
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    if freedom == 0:
        return False
    down, across = ((table.sum() / table.sum(axis=axis)).sum() - 1 for axis in (1, 0))
    inflated = 1 + down * across / (6 * table.sum() * freedom)
    return bool(2 * (table * ratio).sum() / (inflated * times) > chi2.isf(level, freedom))


def nearest_information(
    latents: np.ndarray, factors: Factors, seed: int, times: float = 1.0
) -> Information:
    r"""Estimate information from nearest neighbours along each latent (Ross 2014).

    .. math:: I = \langle \psi(N) + \psi(k) - \psi(N_s) - \psi(m) \rangle

    with :math:`N_s` samples in the class of a sample, and :math:`m` samples nearer to it than its
    :math:`k`-th neighbour in that class, itself included; :math:`k = 10`. Latents enter by their
    ranks only: the sample of rank r takes the r-th of N sorted uniform numbers, which a monotone
    map of a latent does not change. Latents of which more than half are ties are counted.
    """
    counted = binned_information(latents, factors, times)
    shared = counted.shared.reshape(len(factors), factors.values.shape[1], latents.shape[1]).copy()
    spread = np.sort(np.random.default_rng([seed, 3]).uniform(size=len(factors)))
    for j, column in enumerate(latents.T):
        if 2 * len(np.unique(column)) < len(column):
            continue
        order = np.argsort(column, kind="stable")
        for i in np.flatnonzero(counted.dependent[:, j]):
            shared[order, i, j] = _nearest(spread, factors.classes[order, i])
    return counted._replace(shared=shared.reshape(len(factors), -1))


def _nearest(places: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the terms of Ross (2014) for sorted places ``(N,)`` of samples and their classes."""
    terms = np.zeros(len(places))
    for kind in range(int(classes.max()) + 1):
        own = np.flatnonzero(classes == kind)
        k = min(_NEIGHBOURS, len(own) - 1)  # one that is alone in its class has none
        if k < 1:
            continue
        line = places[own]
        padded = np.concatenate([np.full(k, -np.inf), line, np.full(k, np.inf)])
        # The k nearest on a line are a samples below and k - a above, for the best a.
        reach = np.full(len(own), np.inf)
        for below in range(k + 1):
            down = line - padded[k - below : k - below + len(own)]
            up = padded[2 * k - below : 2 * k - below + len(own)] - line
            reach = np.minimum(reach, np.maximum(down, up))
        first = np.searchsorted(places, line - reach, side="right")
        last = np.searchsorted(places, line + reach, side="left")
        near = np.maximum(last - first, k)  # rounding may lose one side of it
        terms[own] = digamma(len(places)) + digamma(k) - digamma(len(own)) - digamma(near)
    return terms
