"""Balanced read-outs find what is there and nothing else, and say what is too rare."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import fisher_exact
from sklearn.linear_model import LogisticRegression

from demix import DemixError
from demix.papers import balanced_readout, is_testable
from demix.papers.reizinger2024.balanced import LEVEL, held_out, two_classes


def data(rows: int, width: int, seed: int = 0, strength: float = 3.0):
    """Features of very different scales, and a factor that a hyperplane tells with noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, width)) @ random.normal(size=(width, width))
    signal = x @ random.normal(size=width)
    factor = random.random(rows) < expit(strength * signal / signal.std() - 1)
    return x * 10.0 ** random.uniform(-3, 3, width) + 5, factor


@pytest.mark.parametrize("shape", [(300, 12), (40, 90)], ids=["tall", "wide"])
def test_the_fit_is_the_logistic_regression_of_its_penalty(shape):
    x, factor = data(*shape)
    found = two_classes(x, factor)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    strength = 4 / (found.penalty * len(x))
    same = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(standard, factor)
    assert x @ found.weights + found.offset == pytest.approx(
        same.decision_function(standard), abs=2e-3
    )


def test_the_penalty_is_that_of_least_error_when_rows_are_left_out():
    x, factor = data(30, 8, strength=1.0)
    signs, standard = np.where(factor, 1.0, -1.0), (x - x.mean(axis=0)) / x.std(axis=0)

    def error(penalty: float) -> float:
        missed = []
        for row in range(len(x)):
            rest = np.delete(np.arange(len(x)), row)
            a = np.column_stack([standard[rest], np.ones(len(rest))])
            # The closed form keeps the penalty of all rows, and a free offset.
            shrink = penalty * len(x) * np.diag([1.0] * 8 + [0.0])
            w = np.linalg.solve(a.T @ a + shrink, a.T @ signs[rest])
            missed.append(signs[row] - standard[row] @ w[:-1] - w[-1])
        return float(np.mean(np.square(missed)))

    penalties = 10.0 ** np.arange(-4, 4.5, 0.5)
    best = penalties[np.argmin([error(penalty) for penalty in penalties])]
    assert two_classes(x, factor).penalty == pytest.approx(best)


def test_a_constant_column_and_a_copy_of_a_column_change_nothing():
    x, factor = data(80, 5)
    told = two_classes(x, factor)(x)
    more = np.column_stack([x, np.full(80, 7.0)])
    assert np.array_equal(two_classes(more, factor)(more), told)


def test_scores_and_tests_do_not_depend_on_scale_and_place_of_features():
    x, factor = data(300, 6)
    one = balanced_readout(x, factor, repeats=3)
    other = balanced_readout(x * 7 - 100, np.where(factor, "yes", "no"), repeats=3)
    assert np.array_equal(one.accuracies, other.accuracies)
    assert (one.p_held, one.held_rows, one.rarer) == (other.p_held, other.held_rows, other.rarer)
    assert one.held_interval[0] < one.held_accuracy < one.held_interval[1]
    assert one.rarer == min(factor.sum(), (~factor).sum())
    assert one.held_rows == 2 * round(0.3 * one.rarer)


def test_resamplings_are_balanced_so_that_a_constant_answer_is_right_half_the_time():
    random = np.random.default_rng(0)
    factor = np.arange(500) < 50
    blind = balanced_readout(np.zeros((500, 3)), factor, repeats=4)
    assert set(blind.accuracies) == {0.5}
    assert (blind.p_resampled, blind.p_held, blind.sem) == (1.0, 1.0, 0.0)
    seen = balanced_readout(random.normal(size=(500, 2)) + 9.0 * factor[:, None], factor, repeats=4)
    assert set(seen.accuracies) == {1.0}
    assert seen.p_resampled == 0.0
    assert seen.p_held == pytest.approx(1 / comb(30, 15))


def test_the_held_out_test_is_honest_under_the_null():
    """Of 200 factors that are noise, 5 % may fall below 0.05: at most 21, by four deviations."""
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 4))
    found = [
        balanced_readout(x, random.permutation(80) < 40, repeats=1, seed=seed).p_held
        for seed in range(200)
    ]
    assert sum(p < 0.05 for p in found) <= 21
    assert np.mean(found) > 0.45


def test_the_p_value_is_that_of_fishers_exact_test():
    from demix.papers.reizinger2024.balanced import _fisher

    random = np.random.default_rng(1)
    for _ in range(5):
        told, true = random.random(30) < 0.6, random.permutation(30) < 15
        table = [[(a & b).sum() for b in (true, ~true)] for a in (told, ~told)]
        assert _fisher(told, true) == pytest.approx(fisher_exact(table, "greater").pvalue)


def test_a_factor_is_testable_if_a_perfect_read_out_would_be_significant():
    assert [n for n in range(60) if is_testable(n)] == list(range(22, 60))
    for rarer in (5, 9, 16, 21, 22, 57):
        least = 1 / comb(2 * held_out(rarer), held_out(rarer))
        assert is_testable(rarer) == (least <= LEVEL)
    assert is_testable(2444)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (np.ones(20, dtype=bool), "all rows have True"),
        (np.arange(20) % 3, "it has 3"),
        (np.ones(19), r"each of 20 rows, but got an array of shape \(19,\)"),
        (np.arange(20) == 0, "one has 1"),
    ],
)
def test_factors_that_cannot_be_read_out_are_refused(factor, words):
    with pytest.raises(DemixError, match=words):
        balanced_readout(np.random.default_rng(0).normal(size=(20, 2)), factor)


def test_other_bad_input():
    x, factor = data(30, 2)
    with pytest.raises(DemixError, match="at least 1 resampling"):
        balanced_readout(x, factor, repeats=0)
    x[3, 1] = np.nan
    with pytest.raises(DemixError, match="1 of its 30 rows hold NaN"):
        balanced_readout(x, factor)
