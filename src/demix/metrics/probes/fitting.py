"""Read-outs of several factors from the same features, whose axes are found once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from demix.metrics.held import drawn
from demix.metrics.probes.basis import Basis
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.logistic import logistic, product
from demix.metrics.probes.measures import (
    Measured,
    measured_binary,
    measured_categories,
    measured_numbers,
)
from demix.metrics.probes.result import Estimate, ReadOut, Split
from demix.metrics.probes.ridge import ridge

Report = Callable[[int, int, str], None]
"""Told how much is done, how much there is to do, and what comes next."""

# So many row numbers are held in memory at a time, whatever the number of orders.
_ORDERS = 4_000_000


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
        group = [factors[i] for i in places]
        words = group[0].name if len(group) == 1 else f"{len(group)} factors"
        report(1 + len(found), total, words)

        def say(penalty: float, done: int = 1 + len(found), words: str = words) -> None:
            report(done, total, f"{words}, penalty {penalty:g}")

        if group[0].categorical:
            fits = _categories(basis, parts, group, split, say)
        else:
            fits = _numbers(basis, parts, group, split)
        found |= zip(places, fits, strict=True)
    report(total - 1, total, "shuffled rows")
    measured = [found[i][0] for i in range(len(factors))]
    nulls = shuffled_scores(measured, len(split.test), permutations, seed)
    return [
        ReadOut(factor.kind, estimates(each, seed), null, float(found[i][1]), split)
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
    basis: Basis,
    parts: Split,
    factors: Sequence[Factor],
    split: Split,
    say: Callable[[float], None],
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
        basis,
        parts.train,
        parts.validation,
        (targets(split.train), targets(split.validation)),
        report=say,
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


def estimates(measured: Measured, seed: int) -> dict[str, Estimate]:
    """Return the scores with the intervals of a bootstrap over the rows that score."""
    values = measured.held.whole()[1]
    low, high = np.quantile(drawn(measured.held, seed)[1], [0.025, 0.975], axis=0)
    ends = zip(measured.names, values, low, high, strict=True)
    return {name: Estimate(*map(float, (x, min(a, x), max(b, x)))) for name, x, a, b in ends}


def shuffled_scores(
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


def missing(factor: Factor, split: Split) -> str | None:
    """Return what the parts of the rows lack for a factor to be fitted and scored, if anything."""
    for words, part in (("fit", split.train), ("score", split.test)):
        held = np.unique(factor.codes[part])
        if factor.categorical:
            held = np.intersect1d(held, factor.counted) if len(factor.counted) > 1 else held
        if len(held) < 2:
            return f"the rows that {words} it hold one value of {factor.name!r} only"
    return None
