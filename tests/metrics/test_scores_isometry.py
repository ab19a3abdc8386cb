"""isometry_error is 0 for maps that keep similarities up to a constant, and only for those."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demix import DemixError
from demix.metrics.isometry import isometry_error
from score_maps import (
    dimensions,
    factors,
    lawful,
    orthogonal,
    scales,
    seeds,
    shift,
    signed_permutation,
    turn,
)

POWERS = [1, 1.5, 2, 3, 4.2]


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_rotation_and_scale_keep_dot_products(seed: int, dim: int, scale: float) -> None:
    s = factors(seed, dim)
    turned = scale * s @ orthogonal(seed, dim)
    assert isometry_error(turned, s) == pytest.approx(0, abs=1e-9)


@given(seed=seeds, dim=dimensions, scale=scales)
@lawful
def test_rotation_scale_and_shift_keep_squared_distances(seed: int, dim: int, scale: float) -> None:
    s = factors(seed, dim)
    moved = scale * (s @ orthogonal(seed, dim) + shift(seed, dim))
    assert isometry_error(moved, s, similarity=2) == pytest.approx(0, abs=1e-9)


@given(seed=seeds, dim=dimensions, scale=scales, p=st.sampled_from(POWERS))
@lawful
def test_order_signs_one_scale_and_shift_keep_every_p(
    seed: int, dim: int, scale: float, p: float
) -> None:
    s = factors(seed, dim)
    order, sign = signed_permutation(seed, dim)
    moved = scale * ((s * sign)[:, order] + shift(seed, dim))
    assert isometry_error(moved, s, similarity=p) == pytest.approx(0, abs=1e-9)


def test_a_shift_changes_dot_products() -> None:
    s = factors(0, 2)
    assert isometry_error(s + 1, s) > 0.5


@pytest.mark.parametrize("p", [1, 1.5, 3, 4.2])
def test_a_rotation_changes_distances_other_than_p_2(p: float) -> None:
    s = factors(0, 2)
    assert isometry_error(s @ turn(), s, similarity=p) > 0.02


@pytest.mark.parametrize("similarity", ["dot", *POWERS])
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
def test_every_other_map_has_an_error(similarity: Any, change: Any) -> None:
    s = factors(0, 2)
    assert isometry_error(change(s), s, similarity=similarity) > 0.1


def test_latents_in_more_dimensions_may_be_isometric() -> None:
    s = factors(0, 2)
    embedded = s @ orthogonal(0, 5)[:2]
    for similarity in ("dot", 2):
        assert isometry_error(embedded, s, similarity=similarity) == pytest.approx(0, abs=1e-9)


def test_shuffled_latents_have_the_error_of_chance() -> None:
    s = factors(0, 3, 2000)
    # Independent dot products share nothing; independent distances share their mean.
    assert isometry_error(s, s).baseline == pytest.approx(1, abs=0.05)
    assert isometry_error(factors(1, 3, 2000), s) == pytest.approx(1, abs=0.05)
    squared = np.square(s[:, None][:300] - s[None, :300]).sum(axis=2)[np.triu_indices(300, 1)]
    share = squared.std() ** 2 * (squared.std() ** 2 + 2 * squared.mean() ** 2)
    chance = math.sqrt(share) / np.square(squared).mean()
    assert isometry_error(s, s, similarity=2).baseline == pytest.approx(chance, abs=0.05)


@pytest.mark.parametrize("similarity", ["dot", 1, 2])
def test_a_collapsed_representation_is_as_bad_as_chance(similarity: Any) -> None:
    s = factors(0, 2)
    assert isometry_error(np.zeros_like(s), s, similarity=similarity) == 1


@pytest.mark.parametrize("similarity", ["cosine", 0, -1, math.nan, math.inf, True, None])
def test_unknown_similarities_are_refused(similarity: Any) -> None:
    s = factors(0, 2)
    with pytest.raises(DemixError, match=f"similarity must be .*but got {similarity!r}"):
        isometry_error(s, s, similarity=similarity)


@pytest.mark.parametrize("rounds", [0, -3])
def test_pairing_no_samples_is_refused(rounds: int) -> None:
    s = factors(0, 2)
    with pytest.raises(DemixError, match=f"rounds must be .*but got {rounds}"):
        isometry_error(s, s, rounds=rounds)
