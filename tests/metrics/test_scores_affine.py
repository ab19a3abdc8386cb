"""affine_r2 is 1 up to affine maps, and only up to those."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from demix import affine_r2
from demix.metrics.blocks import exchangeable
from score_maps import dimensions, factors, invertible, lawful, seeds, shift


@given(seed=seeds, dim=dimensions)
@lawful
def test_any_invertible_affine_map_scores_1(seed: int, dim: int) -> None:
    s = factors(seed, dim)
    score = affine_r2(s @ invertible(seed, dim) + shift(seed, dim), s)
    assert score == pytest.approx(1, abs=1e-9)
    assert score.per_factor == pytest.approx(np.ones(dim), abs=1e-9)


@given(seed=seeds, dim=dimensions)
@lawful
def test_an_affine_map_changes_no_score(seed: int, dim: int) -> None:
    s = factors(seed, dim)
    rough = np.sin(2 * s) + 0.3 * factors(seed + 1, dim)
    moved = rough @ invertible(seed, dim) + shift(seed, dim)
    assert affine_r2(moved, s) == pytest.approx(affine_r2(rough, s), abs=1e-9)


@pytest.mark.parametrize("warp", [np.square, lambda s: s**5, lambda s: np.sin(4 * s)])
def test_a_nonlinear_map_scores_clearly_less(warp: object) -> None:
    s = factors(0, 3, 2000)
    assert affine_r2(warp(s), s) < 0.75


def test_losing_a_factor_loses_its_share() -> None:
    s = factors(0, 3, 5000)
    score = affine_r2(s[:, :2] @ invertible(0, 2), s)
    assert score == pytest.approx(2 / 3, abs=0.01)
    assert score.per_factor == pytest.approx([1, 1, 0], abs=0.01)


def test_more_latents_than_factors_are_no_harm() -> None:
    s = factors(0, 2, 2000)
    noise = factors(1, 3, 2000)
    assert affine_r2(np.hstack([noise, s]) @ invertible(0, 5), s) == pytest.approx(1, abs=1e-9)


def test_noise_costs_its_share_of_the_variance() -> None:
    random = np.random.default_rng(0)
    s = random.normal(size=(20_000, 2))
    noisy = s + 0.5 * random.normal(size=s.shape)
    assert affine_r2(noisy, s) == pytest.approx(1 / 1.25, abs=0.02)


@given(seed=seeds, dim=dimensions)
@lawful
def test_agrees_with_least_squares_written_out(seed: int, dim: int) -> None:
    s = factors(seed, dim, 200)
    z = np.cos(3 * s) + factors(seed + 1, dim, 200) + s
    fit, test = exchangeable(200, 0).halves()
    with_one = np.hstack([z, np.ones((200, 1))])
    weights = np.linalg.lstsq(with_one[fit], s[fit], rcond=None)[0]
    error = np.square(s[test] - with_one[test] @ weights).sum(axis=0)
    spread = np.square(s[test] - s[test].mean(axis=0)).sum(axis=0)
    score = affine_r2(z, s)
    assert score.per_factor == pytest.approx(1 - error / spread, abs=1e-9)
    assert score == pytest.approx(score.per_factor.mean())


def test_fitting_and_scoring_rows_are_two_halves() -> None:
    for samples in (10, 11):
        fit, test = exchangeable(samples, 3).halves()
        assert sorted([*fit, *test]) == list(range(samples))
        assert abs(len(fit) - len(test)) <= 1


def test_shuffled_latents_score_about_nothing() -> None:
    s = factors(0, 3, 5000)
    assert affine_r2(s, s).baseline == pytest.approx(0, abs=0.02)
    assert affine_r2(factors(1, 3, 5000), s) == pytest.approx(0, abs=0.02)


def test_many_random_latents_cannot_buy_a_held_out_score() -> None:
    held_out, in_sample = [], []
    for seed in range(20):
        random = np.random.default_rng(seed)
        z, s = random.normal(size=(60, 20)), random.normal(size=(60, 2))
        held_out.append(affine_r2(z, s, seed=seed))
        centred = z - z.mean(axis=0)
        around = s - s.mean(axis=0)
        rest = around - centred @ np.linalg.lstsq(centred, around, rcond=None)[0]
        in_sample.append(1 - np.square(rest).sum() / np.square(around).sum())
    assert np.mean(in_sample) > 0.25
    assert max(held_out) < 0.1
    assert np.mean(held_out) < -0.5


def test_a_collapsed_representation_scores_nothing() -> None:
    s = factors(0, 2)
    assert affine_r2(np.full_like(s, 0.1), s) == pytest.approx(0, abs=0.02)


def test_the_seed_chooses_the_split() -> None:
    s, z = factors(0, 2), factors(1, 2)
    assert affine_r2(z, s, seed=1) == affine_r2(z, s, seed=1)
    assert affine_r2(z, s, seed=1) != affine_r2(z, s, seed=2)
