"""Linear read-outs of several factors from the same features."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from demix.metrics.blocks import Sampling
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.linear import Basis, logistic, product, ridge
from demix.metrics.probes.measures import (
    Estimate,
    Measured,
    ProbeSplit,
    ReadOut,
    measured_binary,
    measured_categories,
    measured_numbers,
)

Progress = Callable[[int, int, str], None]
"""Called with the number of finished steps, the number of all, and the name of the next."""

# Row numbers that are held in memory at a time, whatever the number of orders.
_ORDERS = 4_000_000


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
        basis,
        parts.train,
        parts.validation,
        both,
        lambda penalty: tell(f"{words}, penalty {penalty:g}"),
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
    values = measured.statistic.unweighted()[1]
    low, high = np.quantile(measured.statistic.bootstrap(sampling)[1], [0.025, 0.975], axis=0)
    ends = zip(measured.names, values, low, high, strict=True)
    return {name: Estimate(*map(float, (x, min(a, x), max(b, x)))) for name, x, a, b in ends}


def shuffled_scores(
    measured: Sequence[Measured], sampling: Sampling, permutations: int
) -> list[np.ndarray]:
    """Score all factors in the same orders of the held-out rows, some orders at a time.

    Rows in blocks have as many orders as shifts.
    """
    rows, shifted = len(sampling), sampling.members is not None
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
