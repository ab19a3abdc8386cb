"""Linear read-outs of several factors from the same features, and how they are measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from demix.metrics.blocks import Sampling
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.linear import Basis, logistic, product, ridge
from demix.metrics.readout import area_of
from demix.metrics.statistic import OfWeights, Statistic, Values, over

Progress = Callable[[int, int, str], None]
"""Called with the number of finished steps, the number of all, and the name of the next."""

_ORDERS = 4_000_000  # row numbers in memory at a time, whatever the number of orders
_TRAIN, _VALIDATION = 0.5, 0.2  # shares of the rows; the others score


class ProbeSplit(NamedTuple):
    """Numbers of the rows that fit, that choose the penalty, and that score."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_of(sampling: Sampling) -> ProbeSplit:
    """Split row numbers: half fit, a fifth chooses the penalty, the others score."""
    return ProbeSplit(*sampling.parts([_TRAIN, _TRAIN + _VALIDATION], [sampling.seed, 3]))


class Estimate(NamedTuple):
    """A held-out score with its 95 % interval: a bootstrap over the rows that score."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ReadOut:
    """How well one factor is read out of features by a linear map.

    ``scores`` are of numbers ``r`` (Pearson's) and ``r2``; of two categories ``auc``,
    ``balanced_accuracy`` and ``accuracy``; of more the latter two. The first is tested: ``null``
    ``(B,)`` is this score with the factor shuffled over the held-out rows, B times.
    """

    kind: str
    scores: Mapping[str, Estimate]
    null: np.ndarray
    penalty: float
    split: ProbeSplit

    @property
    def measure(self) -> str:
        """Name of the score that is tested."""
        return next(iter(self.scores))

    @property
    def tested(self) -> Estimate:
        """The score that is tested."""
        return self.scores[self.measure]

    @property
    def chance(self) -> Estimate:
        """Mean of the null, and the ends of its central 95 %."""
        low, high = np.quantile(self.null, [0.025, 0.975])
        return Estimate(float(self.null.mean()), float(low), float(high))

    @property
    def p(self) -> float:
        """Share of orders of the held-out rows that score as well, their own order included.

        Included, so that p is never 0 and its test exact (Phipson & Smyth 2010).
        """
        as_good = self.null >= self.tested.value - 1e-9  # sums in another order differ a little
        return float((1 + as_good.sum()) / (1 + len(as_good)))


class Measured(NamedTuple):
    """Scores of one read-out: their names, and under weights ``(B, m)``; the first is tested.

    ``shuffled`` returns it, ``(B,)``, for the factor in orders ``(B, m)`` of the held-out rows.
    """

    names: tuple[str, ...]
    of_weights: Callable[[np.ndarray], Values]
    shuffled: Callable[[np.ndarray], np.ndarray]


def measured_numbers(predicted: np.ndarray, true: np.ndarray) -> Measured:
    r"""Return Pearson's r and :math:`R^2` of predictions ``(m, k)``."""
    # Several columns, sine and cosine, are pooled: covariances and squares are added up over them.
    columns = true.shape[1]
    t, p = true - true.mean(axis=0), predicted - predicted.mean(axis=0)
    terms = np.hstack([t, p, np.square(t), np.square(p), t * p, np.square(true - predicted)])

    def scores(weights: np.ndarray) -> Values:
        means = np.split(weights @ terms, range(columns, 6 * columns, columns), axis=1)
        t1, p1, t2, p2, both, missed = means
        spread, reach = (t2 - np.square(t1)).sum(axis=1), (p2 - np.square(p1)).sum(axis=1)
        size = np.sqrt(np.maximum(spread, 0) * np.maximum(reach, 0))
        r = over((both - t1 * p1).sum(axis=1), size)
        r2 = np.where(spread > 0, 1 - over(missed.sum(axis=1), spread), 0.0)
        return _parts([r, r2])

    size = np.sqrt(np.square(t).sum() * np.square(p).sum())

    def shuffled(orders: np.ndarray) -> np.ndarray:
        products = sum(t[:, j][orders] @ p[:, j] for j in range(columns))
        return over(np.asarray(products), np.full(len(orders), size))

    return Measured(("r", "r2"), scores, shuffled)


def measured_binary(logits: np.ndarray, true: np.ndarray, prior: float) -> Measured:
    """Return the area under the ROC curve, balanced and plain accuracy of logits ``(m,)``."""
    # ``prior`` is the share of ``true`` ``(m,)`` in training; what exceeds it is predicted.
    area = area_of(logits, true)
    balanced, _ = _recall(1 * (logits > np.log(prior / (1 - prior))), 1 * true, np.arange(2))
    right = (logits > 0) == true

    def scores(weights: np.ndarray) -> Values:
        return _parts([area(weights), balanced(weights), weights @ right])

    ranks = rankdata(logits)
    pairs, lowest = true.sum() * (~true).sum(), true.sum() * (true.sum() + 1) / 2

    def shuffled(orders: np.ndarray) -> np.ndarray:
        return np.asarray((true.astype(float)[orders] @ ranks - lowest) / pairs)

    return Measured(("auc", "balanced_accuracy", "accuracy"), scores, shuffled)


def measured_categories(
    logits: np.ndarray, true: np.ndarray, priors: np.ndarray, counted: np.ndarray
) -> Measured:
    """Return balanced and plain accuracy of logits ``(m, c)`` for categories ``(m,)``."""
    # The balanced accuracy is the mean recall of those ``counted``, of which it predicts the one
    # that is most likely relative to its share ``priors`` ``(c,)`` among training rows.
    likelier = logits[:, counted] - np.log(priors[counted])
    balanced, shuffled = _recall(counted[likelier.argmax(axis=1)], true, counted)
    right = logits.argmax(axis=1) == true

    def scores(weights: np.ndarray) -> Values:
        return _parts([balanced(weights), weights @ right])

    return Measured(("balanced_accuracy", "accuracy"), scores, shuffled)


def _recall(
    given: np.ndarray, true: np.ndarray, counted: np.ndarray
) -> tuple[OfWeights, Callable[[np.ndarray], np.ndarray]]:
    """Return the mean recall as a function of weights, and as one of orders."""
    among = true[:, None] == counted
    right = among & (given == true)[:, None]

    def mean(weights: np.ndarray) -> np.ndarray:
        members = weights @ among
        # A draw may miss a rare category; the mean is over the others.
        return over(over(weights @ right, members).sum(axis=1), (members > 0).sum(axis=1) * 1.0)

    # What a row adds if its own category is predicted for it, in whatever order.
    here = among.any(axis=0)
    worth = np.where(among.any(axis=1), among @ over(here * 1.0, among.sum(axis=0) * here.sum()), 0)

    def shuffled(orders: np.ndarray) -> np.ndarray:
        return np.asarray(((true[orders] == given) * worth[orders]).sum(axis=1))

    return mean, shuffled


def _parts(scores: Sequence[np.ndarray]) -> Values:
    return scores[0], np.stack(scores, axis=1)


def read_outs(
    features: np.ndarray,
    factors: Sequence[Factor],
    split: ProbeSplit,
    *,
    permutations: int,
    sampling: Sampling,
    callback: Progress = lambda done, total, name: None,
) -> list[ReadOut]:
    """Read factors out of finite features by linear maps, and score these on rows of their own.

    Numbers are read out by ridge regression, categories by logistic regression, of features that
    are standardised by the training rows. Training rows fit, validation rows choose the penalty,
    test rows score. No factor may be constant in the rows that fit or score.
    """
    total = len(factors) + 2
    callback(0, total, "axes of the features")
    basis = Basis.of(features[split.train])
    parts = ProbeSplit(*(basis(features[rows]) for rows in split))
    found: dict[Factor, tuple[Measured, float]] = {}
    # All pairs of categories are fitted at once, the others one by one.
    pairs = [one for one in factors if one.categorical and len(one.levels) < 3]
    for some in filter(None, [pairs, *([one] for one in factors if one not in pairs)]):
        tell = partial(callback, 1 + len(found), total)
        if some[0].categorical:
            found |= zip(some, _categories(basis, parts, some, split, tell), strict=True)
        else:
            tell(some[0].name)
            predicted, penalty = predicted_numbers(basis, parts, some[0], split)
            found[some[0]] = measured_numbers(predicted, some[0].targets[split.test]), penalty
    callback(total - 1, total, "shuffled rows")
    tested = sampling.only(split.test)
    nulls = shuffled_scores([found[factor][0] for factor in factors], tested, permutations)
    return [
        ReadOut(factor.kind, estimates(found[factor][0], tested), null, found[factor][1], split)
        for factor, null in zip(factors, nulls, strict=True)
    ]


def missing(factor: Factor, split: ProbeSplit) -> str | None:
    """Return what the parts of the rows lack for a factor to be fitted and scored, if anything."""
    for words, part in (("fit", split.train), ("score", split.test)):
        present = np.unique(factor.codes[part])
        if factor.categorical and len(factor.counted) > 1:
            present = np.intersect1d(present, factor.counted)
        if len(present) < 2:
            return f"the rows that {words} it hold one value of {factor.name!r} only"
    return None


def predicted_numbers(
    basis: Basis, parts: ProbeSplit, factor: Factor, split: ProbeSplit
) -> tuple[np.ndarray, float]:
    """Return the predictions of numbers for the test rows, and their penalty."""
    targets = factor.targets[split.train], factor.targets[split.validation]
    slopes, intercept, penalty = ridge(basis, parts.train, parts.validation, targets)
    return parts.test @ slopes.astype(parts.test.dtype) + intercept, penalty


def _categories(
    basis: Basis,
    parts: ProbeSplit,
    factors: Sequence[Factor],
    split: ProbeSplit,
    tell: Callable[[str], None],
) -> Iterator[tuple[Measured, float]]:
    words = factors[0].name if len(factors) == 1 else f"{len(factors)} factors"
    # A category without a training row cannot be learnt; its rows count as missed.
    seen = [np.unique(factor.codes[split.train]) for factor in factors]
    binary = len(factors[0].levels) == 2

    def targets(rows: np.ndarray) -> np.ndarray:
        columns = [
            factor.codes[rows, None] == (kinds[1:] if binary else kinds)
            for factor, kinds in zip(factors, seen, strict=True)
        ]
        return np.stack(columns, axis=1).astype(parts.train.dtype)

    both = targets(split.train), targets(split.validation)
    weights, penalties = logistic(
        basis, parts.train, parts.validation, both, lambda x: tell(f"{words}, penalty {x:g}")
    )
    logits = product(parts.test, weights[:-1]) + weights[-1]
    shares = both[0].mean(axis=0, dtype=float)
    for i, factor in enumerate(factors):
        true = factor.codes[split.test]
        if binary:
            yield measured_binary(logits[:, i, 0], true == 1, shares[i, 0]), penalties[i]
            continue
        places = np.full(len(factor.levels), -1)
        places[seen[i]] = np.arange(len(seen[i]))
        counted = places[factor.counted]
        counted = counted[counted >= 0]
        yield measured_categories(logits[:, i], places[true], shares[i], counted), penalties[i]


def estimates(measured: Measured, sampling: Sampling) -> dict[str, Estimate]:
    """Return the scores with the intervals of a bootstrap over the rows that score."""
    statistic = Statistic(np.arange(len(sampling)), measured.of_weights)
    values = statistic.unweighted()[1]
    low, high = np.quantile(statistic.bootstrap(sampling)[1], [0.025, 0.975], axis=0)
    ends = zip(measured.names, values, low, high, strict=True)
    return {name: Estimate(*map(float, (x, min(a, x), max(b, x)))) for name, x, a, b in ends}


def shuffled_scores(
    measured: Sequence[Measured], sampling: Sampling, permutations: int
) -> list[np.ndarray]:
    """Score all factors in the same orders of the held-out rows, some orders at a time."""
    rows, shifted = len(sampling), sampling.members is not None  # then an order for each shift
    random = np.random.default_rng([sampling.seed, 4])
    total = min(permutations, rows - 1) if shifted else permutations
    shifts = sampling.orders(total, folded=False)
    at_once = max(1, _ORDERS // rows)
    parts = []
    for start in range(0, total, at_once):
        number = min(at_once, total - start)
        if shifted:
            orders = np.stack(list(islice(shifts, number)))
        else:
            orders = random.permuted(np.tile(np.arange(rows), (number, 1)), axis=1)
        parts.append([each.shuffled(orders) for each in measured])
    return [np.concatenate(several) for several in zip(*parts, strict=True)]
