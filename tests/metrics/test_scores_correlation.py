"""mean_correlation is 1 up to order, sign, scale and shift; with ranks, up to monotone maps."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from demix import DemixError, mean_correlation
from demix.metrics.blocks import exchangeable
from demix.metrics.regression import correlate
from score_maps import (
    dimensions,
    factors,
    invertible,
    lawful,
    seeds,
    shift,
    signed_permutation,
    turn,
)

METHODS = ["pearson", "spearman"]
MONOTONE = [np.exp, np.arctanh, lambda s: s**3, lambda s: -(s**5), lambda s: np.sign(s) * s**2]


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, dim=dimensions, tiny=st.integers(-18, 18))
@lawful
def test_order_sign_scale_and_shift_of_each_score_1(
    method: Any, seed: int, dim: int, tiny: int
) -> None:
    s = factors(seed, dim)
    order, sign = signed_permutation(seed, dim)
    scale = np.exp(shift(seed, dim) / 10)
    unit = 10.0**tiny
    score = mean_correlation(
        unit * (s * sign * scale + shift(seed, dim))[:, order], s, method=method
    )
    assert score == pytest.approx(1, abs=1e-9)
    assert score.per_factor == pytest.approx(np.ones(dim), abs=1e-9)
    assert order[score.assignment].tolist() == list(range(dim))


@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_the_unit_of_the_factors_does_not_matter(unit: float) -> None:
    s = factors(0, 2)
    assert mean_correlation(s, unit * s) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("warp", MONOTONE)
def test_monotone_maps_score_1_with_ranks_only(warp: Any) -> None:
    s = factors(0, 3, 2000)
    assert mean_correlation(warp(s), s, method="spearman") == pytest.approx(1, abs=1e-9)
    assert mean_correlation(warp(s), s) < 0.985


@pytest.mark.parametrize("method", METHODS)
def test_a_rotation_scores_clearly_less(method: Any) -> None:
    s = factors(0, 2, 5000)
    assert mean_correlation(s @ turn(), s, method=method) < 0.75


def test_maps_that_are_not_monotone_score_nothing_even_with_ranks() -> None:
    s = factors(0, 2, 5000)
    assert mean_correlation(np.square(s), s, method="spearman") < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_latents_beyond_the_factors_stay_unused(method: Any) -> None:
    s = factors(0, 2, 2000)
    latents = np.hstack([factors(1, 3, 2000), -s])
    score = mean_correlation(latents, s, method=method)
    assert score == pytest.approx(1)
    assert score.assignment.tolist() == [3, 4]


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_without_a_latent_counts_0(method: Any) -> None:
    s = factors(0, 3, 2000)
    score = mean_correlation(s[:, [2, 0]], s, method=method)
    assert score == pytest.approx(2 / 3)
    assert score.per_factor == pytest.approx([1, 0, 1])
    assert score.assignment.tolist() == [1, -1, 0]


def test_one_latent_serves_one_factor_only() -> None:
    s = factors(0, 2, 2000)
    both = s.sum(axis=1, keepdims=True)
    score = mean_correlation(np.hstack([both, np.zeros_like(both)]), s)
    assert sorted(score.per_factor) == pytest.approx([0, np.sqrt(0.5)], abs=0.05)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, true=st.integers(1, 4), found=st.integers(1, 4), rounded=st.booleans())
@lawful
def test_correlation_matrix_agrees_with_scipy(
    method: Any, seed: int, true: int, found: int, rounded: bool
) -> None:
    s = factors(seed, true, 60)
    z = factors(seed + 1, found, 60) + s[:, :1] ** 3
    if rounded:  # with ties
        s, z = np.round(3 * s), np.round(3 * z)
    scipy = {"pearson": pearsonr, "spearman": spearmanr}[method]
    expected = [[scipy(s[:, i], z[:, j])[0] for j in range(found)] for i in range(true)]
    assert correlate(z, s, method=method) == pytest.approx(np.array(expected), abs=1e-9)


@given(seed=seeds, dim=st.integers(1, 4))
@lawful
def test_the_matching_is_the_best_of_all_on_one_half_and_scored_on_the_other(
    seed: int, dim: int
) -> None:
    s = factors(seed, dim, 100)
    z = s @ invertible(seed, dim) + factors(seed + 1, dim, 100)
    fit, test = exchangeable(100, 0).halves()
    seen, fresh = (np.abs(np.corrcoef(s[h].T, z[h].T)[:dim, dim:]) for h in (fit, test))
    best = max(permutations(range(dim)), key=lambda order: seen[range(dim), order].sum())
    score = mean_correlation(z, s)
    assert tuple(score.assignment) == best
    assert score.per_factor == pytest.approx(fresh[range(dim), best], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_latents_score_about_nothing(method: Any) -> None:
    s = factors(0, 3, 5000)
    assert mean_correlation(s, s, method=method).baseline < 0.05
    assert mean_correlation(factors(1, 3, 5000), s, method=method) < 0.05


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6])
def test_a_constant_latent_correlates_0(method: Any, constant: float) -> None:
    s = factors(0, 2)
    latents = np.column_stack([np.full(len(s), constant), s[:, 0]])
    assert correlate(latents, s, method=method)[:, 0].tolist() == [0, 0]
    assert mean_correlation(latents, s, method=method).per_factor == pytest.approx([1, 0])


def test_an_unknown_method_is_refused() -> None:
    s = factors(0, 2)
    for score in (correlate, mean_correlation):
        with pytest.raises(DemixError, match=r'"pearson" or "spearman", but got \'kendall\''):
            score(s, s, method="kendall")
