"""isometry_error is 0 for maps that keep distances up to a constant, and only for those."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from demix.metrics.regression import isometry_error
from score_maps import dimensions, factors, lawful, orthogonal, scales, seeds, shift


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_rotation_scale_and_shift_keep_squared_distances(seed: int, dim: int, scale: float) -> None:
    s = factors(seed, dim)
    moved = scale * (s @ orthogonal(seed, dim) + shift(seed, dim))
    assert isometry_error(moved, s) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s * [1.0, 2.0],
        lambda s: s @ [[1.0, 2.0], [0.0, 1.0]],
        lambda s: s**3,
        lambda s: s[:, :1],
        lambda s: s + 0.3 * factors(1, 2),
    ],
    ids=["anisotropic", "shear", "warp", "projection", "noise"],
)
def test_every_other_map_has_an_error(change: Any) -> None:
    s = factors(0, 2)
    assert isometry_error(change(s), s) > 0.1


def test_latents_in_more_dimensions_may_be_isometric() -> None:
    s = factors(0, 2)
    assert isometry_error(s @ orthogonal(0, 5)[:2], s) == pytest.approx(0, abs=1e-9)


def test_shuffled_latents_have_the_error_of_chance() -> None:
    s = factors(0, 3, 2000)
    # Independent distances share their mean.
    squared = np.square(s[:, None][:300] - s[None, :300]).sum(axis=2)[np.triu_indices(300, 1)]
    share = squared.std() ** 2 * (squared.std() ** 2 + 2 * squared.mean() ** 2)
    chance = math.sqrt(share) / np.square(squared).mean()
    assert isometry_error(s, s).baseline == pytest.approx(chance, abs=0.05)


def test_a_collapsed_representation_keeps_nothing() -> None:
    s = factors(0, 2)
    assert isometry_error(np.zeros_like(s), s) == 1
