"""orthogonal_r2 is 1 up to rotation, reflection, one scale and a shift, and only up to those."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from demix import DemixError, affine_r2, orthogonal_r2
from score_maps import dimensions, factors, invertible, lawful, orthogonal, scales, seeds, shift


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_any_rotation_scale_and_shift_scores_1(seed: int, dim: int, scale: float) -> None:
    s = factors(seed, dim)
    score = orthogonal_r2(scale * s @ orthogonal(seed, dim) + shift(seed, dim), s)
    assert score == pytest.approx(1, abs=1e-9)
    assert score.per_factor == pytest.approx(np.ones(dim), abs=1e-9)


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_such_a_map_changes_no_score(seed: int, dim: int, scale: float) -> None:
    s = factors(seed, dim)
    rough = np.sin(2 * s) + 0.3 * factors(seed + 1, dim)
    moved = scale * rough @ orthogonal(seed, dim) + shift(seed, dim)
    assert orthogonal_r2(moved, s) == pytest.approx(orthogonal_r2(rough, s), abs=1e-9)


@pytest.mark.parametrize(
    "matrix",
    [np.diag([1.0, 3.0]), np.array([[1.0, 2.0], [0.0, 1.0]]), np.diag([1.0, 0.0])],
    ids=["anisotropic", "shear", "projection"],
)
def test_other_linear_maps_score_clearly_less(matrix: np.ndarray) -> None:
    s = factors(0, 2, 2000)
    assert orthogonal_r2(s @ matrix, s) < 0.9


@given(seed=seeds)
@lawful
def test_it_never_exceeds_affine_r2_by_more_than_chance(seed: int) -> None:
    s = factors(seed, 3, 2000)
    mixed = s @ invertible(seed, 3)
    assert orthogonal_r2(mixed, s) <= affine_r2(mixed, s) + 1e-9


@pytest.mark.parametrize("warp", [np.square, lambda s: s**5, np.abs])
def test_a_nonlinear_map_scores_clearly_less(warp: object) -> None:
    s = factors(0, 3, 2000)
    assert orthogonal_r2(warp(s), s) < 0.75


def test_agrees_with_procrustes_written_out() -> None:
    random = np.random.default_rng(0)
    s = random.normal(size=(20_000, 3))
    z = 2 * s @ orthogonal(5, 3) + random.normal(size=s.shape) + 7
    # The best scale of a rotation for noise of this size: cov / var = 2 / (4 + 1).
    error = np.square(s - 0.4 * (z - z.mean(axis=0)) @ orthogonal(5, 3).T).mean(axis=0)
    expected = 1 - error / s.var(axis=0)
    assert orthogonal_r2(z, s).per_factor == pytest.approx(expected, abs=0.02)


def test_shuffled_latents_score_about_nothing() -> None:
    s = factors(0, 3, 5000)
    assert orthogonal_r2(s, s).baseline == pytest.approx(0, abs=0.02)
    assert orthogonal_r2(factors(1, 3, 5000), s) == pytest.approx(0, abs=0.02)


def test_a_collapsed_representation_scores_nothing() -> None:
    s = factors(0, 2)
    for constant in (0.0, 0.1):
        assert orthogonal_r2(np.full_like(s, constant), s) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(("latents", "true"), [(3, 2), (2, 3)])
def test_a_rotation_needs_as_many_latents_as_factors(latents: int, true: int) -> None:
    with pytest.raises(DemixError, match=f"got {latents} and {true}; use affine_r2"):
        orthogonal_r2(factors(0, latents), factors(1, true))
