"""What is found by chance is as rare as it is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from demix import probe
from single_readout import read_out


@pytest.fixture(scope="module")
def independent():
    """Features, and factors of all kinds that do not depend on them."""
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 10))
    table = {f"number {i}": random.normal(size=300) for i in range(20)}
    table |= {f"pair {i}": random.uniform(size=300) < 0.3 for i in range(20)}
    table |= {f"kind {i}": random.integers(0, 4, 300) for i in range(8)}
    table |= {f"hour {i}": random.uniform(0, 24, 300) for i in range(8)}
    return probe(features, table, periods={f"hour {i}": 24 for i in range(8)})


def test_p_values_of_independent_factors_are_uniform(independent):
    values = [one.read_out.p for one in independent.factors]
    assert len(values) == 56
    # Over seeds such a p-value is below 0.01 once in a hundred.
    assert kstest(values, "uniform").pvalue > 0.01
    assert all(one.bonferroni > 0.05 for one in independent.factors)
    assert all(one.benjamini_hochberg > 0.05 for one in independent.factors)


def test_there_are_orders_enough_for_the_number_of_factors(independent):
    smallest = 1 / (1 + independent.permutations)
    assert 56 * smallest < 0.01


def test_adjusted_p_values_are_those_of_their_definitions(independent):
    p = np.array([one.read_out.p for one in independent.factors])
    assert [one.bonferroni for one in independent.factors] == pytest.approx(np.minimum(1, 56 * p))
    # A factor is found at level a if for some k >= its rank, the k-th p-value is below a k / n.
    ranks = np.argsort(np.argsort(p, kind="stable"), kind="stable")
    for place, one in enumerate(independent.factors):
        steps = 56 * np.sort(p)[ranks[place] :] / np.arange(ranks[place] + 1, 57)
        assert one.benjamini_hochberg == pytest.approx(min(1, steps.min()))


def test_the_null_is_that_of_fits_to_shuffled_factors():
    random = np.random.default_rng(1)
    features = random.normal(size=(400, 5))
    factor = features[:, 0] + random.normal(size=400)
    ours = read_out(features, factor, "continuous").null
    refits = [
        read_out(features, random.permutation(factor), "continuous", permutations=1)
        .scores["r"]
        .value
        for _ in range(150)
    ]
    # 150 refits tell the mean to 1/12 and the spread to 1/17 of the spread, three times over.
    assert np.mean(refits) == pytest.approx(ours.mean(), abs=0.25 * ours.std())
    assert np.std(refits) == pytest.approx(ours.std(), rel=0.18)


def test_intervals_of_r_agree_with_those_of_normal_variables():
    random = np.random.default_rng(2)
    features = random.normal(size=(2000, 3))
    score = read_out(features, features[:, 0] + random.normal(size=2000), "continuous").scores["r"]
    half = 1.96 / np.sqrt(600 - 3)
    low, high = np.tanh(np.arctanh(score.value) + half * np.array([-1, 1]))
    assert [score.low, score.high] == pytest.approx([low, high], abs=0.3 * (high - low) / 2)


def test_the_same_seed_gives_the_same_numbers_and_another_one_others():
    random = np.random.default_rng(3)
    features = random.normal(size=(200, 3))
    factor = features[:, 0] + random.normal(size=200)
    first, again, other = (read_out(features, factor, "continuous", seed=s) for s in (0, 0, 1))
    assert first.scores == again.scores != other.scores
    assert first.p == again.p
    assert np.array_equal(first.null, again.null)
