"""Scores by linear read-outs of categories."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from demix._support.errors import DemixError
from demix.metrics.blocks import Blocks
from demix.metrics.factors import Columns, Factors, check_factors
from demix.metrics.score import SLOW, SLOWEST, Meaning, Score, scored
from demix.metrics.statistic import Statistic, Values, mean_of, over

# Nearly no penalty, enough to give classes that can be separated a finite optimum.
_STRENGTH = 1e4
_LEFT_OPEN = "which latent depends on which factor, and any mixing of them"


def linear_accuracy(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    """Return the held-out accuracy of linear classifiers from latents to categories.

    Multinomial logistic regression, fitted on one half of the samples and scored on the other, the
    mean over factors: the counterpart of :func:`affine_r2` for categories, which are all that is
    scored.

    Invariant to invertible affine maps of the latents. Chance is about the share of the most
    frequent category. Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import linear_accuracy
    >>> random = np.random.default_rng(0)
    >>> shape = random.choice(["cube", "cone", "ball"], size=600)
    >>> z = np.stack([shape == "cube", shape == "cone"], axis=1) @ [[1.0, 2.0], [3.0, 1.0]]
    >>> score = linear_accuracy(z, shape[:, None])
    >>> float(score), bool(score.baseline < 0.5)
    (1.0, True)
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    columns = np.flatnonzero(true.categorical)
    if len(columns) == 0:
        raise DemixError(
            "linear_accuracy needs a categorical factor, but all columns are numbers; list some as "
            "categorical, or use affine_r2."
        )
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        guessed = [class_shares(z, true.classes[:, i], fit, test).argmax(axis=1) for i in columns]
        right = np.stack(guessed, axis=1) == true.classes[test][:, columns]
        return Statistic(test, lambda weights: mean_of(weights @ right))

    meaning = Meaning("categories that hyperplanes separate", _LEFT_OPEN)
    return scored(measure, latents, meaning, sampling, nulls=SLOW)


def explicitness(
    latents: Any, factors: Any, *, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> Score:
    """Return the explicitness (Ridgeway & Mozer 2018, Section 3).

    For each category, the area under the ROC curve (AUC) of a logistic regression for it against
    all others; the mean over categories, then over factors. A continuous factor stands for three
    pairs of categories, below and above its quartiles: no linear map separates bins in the middle
    of a range from both sides of it, however explicit the factor. Fitted on one half of the samples
    and scored on the other; chance is 1/2.

    Invariant to invertible affine maps of the latents. The interval is that of the placements of
    DeLong et al. (1988). Parameters are those of :func:`demix.all_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.readout import explicitness
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> score = explicitness(z @ [[1.0, 2.0], [3.0, -1.0]], z)
    >>> bool(score > 0.999), round(score.baseline, 1)
    (True, 0.5)
    """
    latents, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    fit, test = sampling.halves()

    def measure(z: np.ndarray) -> Statistic:
        areas = [_areas(z, true, i, fit, test) for i in range(true.number)]

        def area(weights: np.ndarray) -> Values:
            parts = [np.mean([of(weights) for of in some], axis=0) for some in areas]
            return mean_of(np.stack(parts, axis=1))

        return Statistic(test, area)

    meaning = Meaning("each category, or part of a range, on one side of a hyperplane", _LEFT_OPEN)
    return scored(measure, latents, meaning, sampling, nulls=SLOWEST)


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


def _areas(
    latents: np.ndarray, factors: Factors, column: int, fit: np.ndarray, test: np.ndarray
) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Return the area of each category of a factor, or of the part above each quartile."""
    values = factors.values[:, column]
    if factors.categorical[column]:
        sets = [values == kind for kind in range(factors.classes_of(column))]
    else:
        sets = [values > edge for edge in np.quantile(values, [0.25, 0.5, 0.75])]
    areas = []
    for among in sets:
        if all(0 < among[rows].sum() < len(rows) for rows in (fit, test)):
            model, inputs = _fitted(latents, among, fit, test)
            areas.append(area_of(model.decision_function(inputs), among[test]))
    # A factor of which no category is in both halves is guessed by chance.
    return areas or [lambda weights: np.full(len(weights), 0.5)]


def area_of(scores: np.ndarray, among: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
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
        # Further steps change no held-out figure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=_STRENGTH, max_iter=200).fit(inputs[fit], classes[fit])
    return model, inputs[test]
