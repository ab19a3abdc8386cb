"""Linear read-outs: of one factor, and of several from the same features."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_matrix, check_seed
from demix.metrics.blocks import Sampling, exchangeable
from demix.metrics.factors import column_of
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.logistic import logistic, product
from demix.metrics.probes.measures import (
    Measured,
    measured_binary,
    measured_categories,
    measured_numbers,
)
from demix.metrics.probes.result import Estimate, ProbeSplit, ReadOut, split_of
from demix.metrics.probes.ridge import Basis, ridge

Progress = Callable[[int, int, str], None]
"""Called with the number of finished steps, the number of all, and the name of the next."""

# Row numbers that are held in memory at a time, whatever the number of orders.
_ORDERS = 4_000_000


def read_out(
    features: Any,
    factor: Any,
    kind: str,
    *,
    split: ProbeSplit | None = None,
    period: float | None = None,
    permutations: int = 1000,
    seed: int = 0,
) -> ReadOut:
    """Read one factor out of features by a linear map, and score that on rows of their own.

    Numbers are read out by ridge regression, categories by logistic regression, of features that
    are standardised by the training rows. Training rows fit, validation rows choose the penalty,
    test rows score.

    Parameters
    ----------
    features : array (N, d)
        The representation; float32 stays so.
    factor : array (N,)
        Numbers, or text for categories.
    kind : "continuous", "ordinal", "periodic", "categorical" or "binary"
        What the factor is: a number; levels in order, which are numbered; a number that repeats
        after ``period``, read out as sine and cosine; one of several categories, or of two.
    split : ProbeSplit, optional
        Row numbers ``(train, validation, test)``. By default half, a fifth and the rest of the
        rows at random.
    permutations, seed : int
        Size of the null; seed of the split, of the null and of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.probes.readouts import read_out
    >>> random = np.random.default_rng(0)
    >>> angle, size = random.uniform(0, 360, 500), random.normal(size=500)
    >>> features = np.stack([np.cos(np.radians(angle)) + size, np.sin(np.radians(angle)), size], 1)
    >>> found = read_out(features, angle, "periodic", period=360)
    >>> round(found.scores["r"].value, 3), round(found.scores["r2"].value, 3), found.p < 0.01
    (1.0, 1.0, True)
    """
    check_seed(seed)
    values = column_of(factor, "the factor")
    rows = check_matrix(features, "features", keep_float32=True)
    if len(rows) != len(values):
        raise DemixError(
            f"Features and factor must have one row per sample, but have {len(rows)} and "
            f"{len(values)} rows."
        )
    known = Factor("the factor", values, kind, period)
    sampling = exchangeable(len(rows), seed)
    parts = split_of(sampling) if split is None else _check_split(split, len(rows))
    reason = missing(known, parts)
    if reason is not None:
        raise DemixError(f"Expected a factor that can be read out, but {reason}.")
    return read_outs(rows, [known], parts, permutations=permutations, sampling=sampling)[0]


def read_outs(
    features: np.ndarray,
    factors: Sequence[Factor],
    split: ProbeSplit,
    *,
    permutations: int,
    sampling: Sampling,
    callback: Progress = lambda done, total, name: None,
) -> list[ReadOut]:
    """Read several factors out of the same finite features; see :func:`read_out`.

    No factor may be constant in the rows that fit or score.
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
        fits = _categories if some[0].categorical else _numbers
        found |= zip(some, fits(basis, parts, some, split, tell), strict=True)
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


def _numbers(
    basis: Basis,
    parts: ProbeSplit,
    factors: Sequence[Factor],
    split: ProbeSplit,
    tell: Callable[[str], None],
) -> Iterator[tuple[Measured, float]]:
    for factor in factors:
        tell(factor.name)
        predicted, penalty = predicted_numbers(basis, parts, factor, split)
        yield measured_numbers(predicted, factor.targets[split.test]), penalty


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
        *(basis, parts.train, parts.validation, both),
        callback=lambda penalty: tell(f"{words}, penalty {penalty:g}"),
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


def _check_split(split: Sequence[Any], rows: int) -> ProbeSplit:
    """Return parts that share no row: what fits a read-out, or chooses it, must not score it."""
    parts = ProbeSplit(*(np.asarray(part, dtype=np.int64) for part in split))
    every = np.concatenate(parts)
    if len(every) and not 0 <= every.min() <= every.max() < rows:
        raise DemixError(
            f"Rows are numbered 0..{rows - 1}, but the split holds {every.min()}..{every.max()}."
        )
    twice = len(every) - len(np.unique(every))
    if twice or not all(len(part) for part in parts):
        found = f"{twice} rows are in it twice" if twice else "one of its parts is empty"
        raise DemixError(f"A split must have three parts that share no row, but {found}.")
    return parts
