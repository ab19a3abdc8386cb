"""Linear read-outs of factors from features: fitted, penalised and scored on rows of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from demix.errors import DemixError
from demix.probes.basis import Basis
from demix.probes.factor import Factor, column_of
from demix.probes.logistic import logistic, product
from demix.probes.measures import (
    Measured,
    measured_binary,
    measured_categories,
    measured_numbers,
)
from demix.probes.ridge import ridge
from demix.scores.held import drawn
from demix.validation import check_matrix, check_seed

Report = Callable[[int, int, str], None]
"""Told how much is done, how much there is to do, and what comes next."""

# Rows that fit and rows that choose the penalty; the others score.
_FIT, _CHOOSE = 0.5, 0.2
_ORDERS = 4_000_000


class Split(NamedTuple):
    """Numbers of the rows that fit, that choose the penalty, and that score."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class Estimate(NamedTuple):
    """A held-out score with its 95 % interval: a bootstrap over the rows that score."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ReadOut:
    """How well one factor is read out of features by a linear map.

    Parameters
    ----------
    kind : str
        The kind of the factor.
    scores : dict of str to Estimate
        Of numbers ``r`` (Pearson's) and ``r2``; of binary factors ``auc``, ``balanced_accuracy``
        and ``accuracy``; of categories the latter two. The first is the one that is tested.
    null : ndarray (B,)
        The first score with the factor shuffled over the held-out rows, B times.
    penalty : float
        What the validation rows chose.
    split : Split
        Which rows did what.
    """

    kind: str
    scores: Mapping[str, Estimate]
    null: np.ndarray
    penalty: float
    split: Split

    @property
    def measure(self) -> str:
        """Name of the score that is tested."""
        return next(iter(self.scores))

    @property
    def value(self) -> float:
        """The score that is tested."""
        return self.scores[self.measure].value

    @property
    def chance(self) -> float:
        """Mean of the null."""
        return float(self.null.mean())

    @property
    def p(self) -> float:
        """Share of the null that scores as well, the factor's own order counted in.

        Counted in, so that p is never 0 and its test exact (Phipson & Smyth 2010).
        """
        as_good = self.null >= self.value - 1e-12
        return float((1 + as_good.sum()) / (1 + len(as_good)))


def random_split(rows: int, seed: int) -> Split:
    """Split row numbers at random: half fit, a fifth chooses the penalty, the others score."""
    order = np.random.default_rng([seed, 3]).permutation(rows)
    first, second = int(_FIT * rows), int((_FIT + _CHOOSE) * rows)
    return Split(order[:first], order[first:second], order[second:])


def read_out(
    features: Any,
    factor: Any,
    kind: str,
    *,
    split: Split | None = None,
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
    split : Split, optional
        Row numbers ``(train, validation, test)``. By default half, a fifth and the rest of the
        rows at random.
    period : float, optional
        Of a periodic factor, e.g. 360.
    permutations : int
        Size of the null.
    seed : int
        Seed of the split, of the null and of the intervals.

    Returns
    -------
    ReadOut
        Scores with intervals, the null and its p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.probes import read_out
    >>> random = np.random.default_rng(0)
    >>> angle, size = random.uniform(0, 360, 500), random.normal(size=500)
    >>> features = np.stack([np.cos(np.radians(angle)) + size, np.sin(np.radians(angle)), size], 1)
    >>> found = read_out(features, angle, "periodic", period=360)
    >>> round(found.scores["r"].value, 3), round(found.scores["r2"].value, 3), found.p < 0.01
    (1.0, 1.0, True)
    >>> read_out(features, size > 1, "binary").scores["auc"].value > 0.99
    True
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
    parts = random_split(len(rows), seed) if split is None else Split(*map(np.asarray, split))
    reason = missing(known, parts)
    if reason is not None:
        raise DemixError(f"Expected a factor that can be read out, but {reason}.")
    return read_outs(rows, [known], parts, permutations=permutations, seed=seed)[0]


def missing(factor: Factor, split: Split) -> str | None:
    """Return what the parts of the rows lack for a factor to be fitted and scored, if anything."""
    for words, part in (("fit", split.train), ("score", split.test)):
        held = np.unique(factor.codes[part])
        if factor.categorical:
            held = np.intersect1d(held, factor.counted) if len(factor.counted) > 1 else held
        if len(held) < 2:
            return f"the rows that {words} it hold one value of {factor.name!r} only"
    return None


def read_outs(
    features: np.ndarray,
    factors: Sequence[Factor],
    split: Split,
    *,
    permutations: int,
    seed: int,
    report: Report = lambda done, total, what: None,
) -> list[ReadOut]:
    """Read several factors out of the same features; see :func:`read_out`.

    Parameters
    ----------
    features : ndarray (N, d)
        Finite numbers.
    factors : sequence of Factor
        Of ``N`` values each, none of them constant in the rows that fit or score.
    split, permutations, seed : as there
    report : callable
        Told what is done.
    """
    total = len(factors) + 2
    report(0, total, "axes of the features")
    basis = Basis.of(features[split.train])
    parts = Split(*(basis(features[rows]) for rows in split))
    found: dict[int, tuple[Measured, float]] = {}
    for places in _together(factors):
        report(1 + len(found), total, ", ".join(factors[i].name for i in places))
        fit = _categories if factors[places[0]].categorical else _numbers
        found |= zip(places, fit(basis, parts, [factors[i] for i in places], split), strict=True)
    report(total - 1, total, "shuffled rows")
    measured = [found[i][0] for i in range(len(factors))]
    nulls = _nulls(measured, len(split.test), permutations, seed)
    return [
        ReadOut(factor.kind, _estimates(each, seed), null, found[i][1], split)
        for i, (factor, each, null) in enumerate(zip(factors, measured, nulls, strict=True))
    ]


def _together(factors: Sequence[Factor]) -> list[list[int]]:
    """Return which factors are fitted at once: all numbers; all pairs; the others one by one."""
    numbers = [i for i, factor in enumerate(factors) if not factor.categorical]
    pairs = [i for i, factor in enumerate(factors) if factor.categorical and len(factor.levels) < 3]
    others = [[i] for i in range(len(factors)) if i not in {*numbers, *pairs}]
    return [group for group in (numbers, pairs, *others) if group]


def _numbers(
    basis: Basis, parts: Split, factors: Sequence[Factor], split: Split
) -> Iterator[tuple[Measured, float]]:
    targets = [
        (factor.targets[split.train], factor.targets[split.validation]) for factor in factors
    ]
    for factor, (slopes, intercept, penalty) in zip(
        factors, ridge(basis, parts.train, parts.validation, targets), strict=True
    ):
        predicted = parts.test @ slopes.astype(parts.test.dtype) + intercept
        yield measured_numbers(predicted, factor.targets[split.test]), penalty


def _categories(
    basis: Basis, parts: Split, factors: Sequence[Factor], split: Split
) -> Iterator[tuple[Measured, float]]:
    # What no training row has cannot be learnt; its rows count as missed.
    seen = [np.unique(factor.codes[split.train]) for factor in factors]
    binary = len(factors[0].levels) == 2

    def targets(rows: np.ndarray) -> np.ndarray:
        columns = [
            factor.codes[rows, None] == (kinds[1:] if binary else kinds)
            for factor, kinds in zip(factors, seen, strict=True)
        ]
        return np.stack(columns, axis=1).astype(parts.train.dtype)

    weights, penalties = logistic(
        basis, parts.train, parts.validation, (targets(split.train), targets(split.validation))
    )
    logits = product(parts.test, weights[:-1]) + weights[-1]
    shares = targets(split.train).mean(axis=0, dtype=float)
    for i, factor in enumerate(factors):
        true = factor.codes[split.test]
        if binary:
            yield measured_binary(logits[:, i, 0], true == 1, shares[i, 0]), penalties[i]
        else:
            places = np.full(len(factor.levels), -1)
            places[seen[i]] = np.arange(len(seen[i]))
            counted = places[factor.counted]
            yield (
                measured_categories(logits[:, i], places[true], shares[i], counted[counted >= 0]),
                penalties[i],
            )


def _estimates(measured: Measured, seed: int) -> dict[str, Estimate]:
    values = measured.held.whole()[1]
    low, high = np.quantile(drawn(measured.held, seed)[1], [0.025, 0.975], axis=0)
    ends = zip(measured.names, values, low, high, strict=True)
    return {name: Estimate(*map(float, (x, min(a, x), max(b, x)))) for name, x, a, b in ends}


def _nulls(
    measured: Sequence[Measured], rows: int, permutations: int, seed: int
) -> list[np.ndarray]:
    """Score all factors in the same random orders of the held-out rows, some orders at a time."""
    random = np.random.default_rng([seed, 4])
    at_once = max(1, _ORDERS // rows)
    parts = []
    for start in range(0, permutations, at_once):
        number = min(at_once, permutations - start)
        orders = random.permuted(np.tile(np.arange(rows), (number, 1)), axis=1)
        parts.append([each.shuffled(orders) for each in measured])
    return [np.concatenate(several) for several in zip(*parts, strict=True)]
