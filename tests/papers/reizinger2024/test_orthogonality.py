"""orthogonality_error is 0 for rotations with one scale, and grows with everything else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from demix import DemixError
from demix.papers.reizinger2024.orthogonality import orthogonality_error
from score_maps import dimensions, factors, lawful, orthogonal, scales, seeds, shift


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_rotation_one_scale_and_shift_change_nothing(seed, dim, scale):
    s = factors(seed, dim)
    bent = s @ np.diag(np.arange(1.0, dim + 1)) + 0.1 * factors(seed + 1, dim)
    moved = scale * (bent @ orthogonal(seed, dim) + shift(seed, dim))
    assert orthogonality_error(moved, s) == pytest.approx(orthogonality_error(bent, s), abs=1e-8)
    assert orthogonality_error(scale * s @ orthogonal(seed, dim), s) == pytest.approx(0, abs=1e-9)


@given(seed=seeds)
@lawful
def test_it_is_the_spread_of_the_singular_values(seed):
    s = factors(seed, 3)
    values = np.array([0.5, 1.0, 3.0])
    latents = s @ orthogonal(seed, 3) * values @ orthogonal(seed + 1, 3)
    score = orthogonality_error(latents, s)
    assert score == pytest.approx(np.abs(values / 1.5 - 1).mean())
    assert np.sort(score.per_factor) == pytest.approx(values / 1.5)


def test_noise_of_the_latents_is_no_stretch():
    """The map goes from factors to latents, so noise of the latents does not shrink it."""
    s = factors(0, 3, samples=100_000)
    noisy = s + 2 * factors(1, 3, samples=100_000)
    assert orthogonality_error(noisy, s) < 0.02


def test_constant_latents_are_as_far_as_can_be():
    assert orthogonality_error(np.ones((400, 2)), factors(0, 2)) == 1


def test_unequal_numbers_are_refused():
    with pytest.raises(DemixError, match="as many latents as factors, but got 2 and 3"):
        orthogonality_error(factors(0, 2), factors(0, 3))
