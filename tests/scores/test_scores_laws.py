"""Each score is invariant to what it leaves open, and to no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from score_groups import invertible, signed_permutation, turn

from demix import (
    beta_vae_score,
    dci,
    explicitness,
    factor_vae_score,
    infomec,
    linear_accuracy,
    modularity,
    mutual_information_gap,
    separated_predictability,
)

SAMPLES = 800


def part(function: Any, place: int) -> Any:
    return lambda *arrays, **options: function(*arrays, **options)[place]


MONOTONE = {
    "mutual information gap": mutual_information_gap,
    "modularity": modularity,
    "InfoModularity": part(infomec, 0),
    "InfoCompactness": part(infomec, 1),
    "disentanglement": part(dci, 0),
    "completeness": part(dci, 1),
    "informativeness": part(dci, 2),
}
SCALES = {
    "SAP": separated_predictability,
    "beta-VAE": beta_vae_score,
    "FactorVAE": factor_vae_score,
}
AFFINE = {
    "explicitness": explicitness,
    "InfoExplicitness": part(infomec, 2),
    "linear accuracy": linear_accuracy,
}


def cases(*families: dict[str, Any]) -> Any:
    both = {name: score for family in families for name, score in family.items()}
    return pytest.mark.parametrize("score", both.values(), ids=both.keys())


@pytest.fixture(scope="module")
def rough() -> tuple[np.ndarray, np.ndarray]:
    """Latents that are neither perfect nor nothing, and factors of both kinds."""
    random = np.random.default_rng(0)
    s = np.column_stack(
        [random.normal(size=(SAMPLES, 2)), random.integers(0, 3, size=(SAMPLES, 1))]
    )
    mixing = [[1.0, 0.3, 0.0, 0.2], [0.0, 1.0, 0.5, 0.0], [0.2, 0.0, 1.0, 0.0]]
    return s @ mixing + 0.4 * random.normal(size=(SAMPLES, 4)), s


@cases(MONOTONE)
def test_monotone_maps_of_each_latent_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    warped = np.column_stack([np.exp(z[:, 0]), z[:, 1] ** 3, np.arctan(z[:, 2]), 5 * z[:, 3] - 7])
    first, second = score(z, s), score(warped, s)
    assert first == second
    assert (first.low, first.high, first.baseline) == (second.low, second.high, second.baseline)


@cases(MONOTONE, SCALES)
def test_order_changes_nothing_but_the_draws_of_trees(score: Any, rough: Any) -> None:
    z, s = rough
    order, _ = signed_permutation(0, 4)
    trees = score in [MONOTONE[name] for name in ("disentanglement", "completeness")]
    loose = 0.05 if trees else 0.02 if score is MONOTONE["informativeness"] else 1e-9
    assert score(z[:, order], s) == pytest.approx(score(z, s), abs=loose)


@cases(SCALES)
def test_sign_scale_and_shift_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    moved = z * [-1e-3, 5, -70, 2] + [1, 2, 3, 4]
    assert score(moved, s) == pytest.approx(score(z, s), abs=1e-6)


@cases(MONOTONE)
def test_signs_change_hardly_anything(score: Any, rough: Any) -> None:
    # Bins and trees begin at the other end.
    z, s = rough
    assert score(-z, s) == pytest.approx(score(z, s), abs=0.06)


@cases(AFFINE)
def test_affine_maps_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    moved = z @ invertible(0, 4) + [1, 2, 3, 4]
    # Logistic regression stops short of its optimum, and has a little penalty.
    assert score(moved, s) == pytest.approx(score(z, s), abs=0.01)


@cases(MONOTONE, SCALES)
def test_a_rotation_costs(score: Any) -> None:
    random = np.random.default_rng(0)
    s = random.uniform(size=(SAMPLES, 2))
    s = s - 0.5
    if score is MONOTONE["informativeness"]:
        return  # trees read a rotation out, and only blur it
    assert score(s @ turn(), s) < score(s, s) - 0.3


@cases(AFFINE)
def test_what_is_not_linear_costs(score: Any) -> None:
    random = np.random.default_rng(0)
    s = np.sign(random.normal(size=(SAMPLES, 2)))
    # Exclusive or: together the latents determine the first factor, but by no hyperplane.
    z = np.column_stack([s[:, 0] * s[:, 1], s[:, 1]])
    assert score(z, s) < score(s, s) - 0.2


@cases(MONOTONE, SCALES, AFFINE)
def test_the_names_of_categories_do_not_matter(score: Any, rough: Any) -> None:
    z, s = rough
    named = s.astype(object)
    named[:, 2] = np.array(["ball", "cone", "cube"])[s[:, 2].astype(int)]
    other = s.copy()
    other[:, 2] = np.array([-5.0, 3.0, 70.0])[s[:, 2].astype(int)]
    expected = score(z, s)
    assert score(z, named) == expected
    assert score(z, other) == expected


@cases(MONOTONE, SCALES, AFFINE)
def test_the_same_seed_gives_the_same_and_nothing_is_changed(score: Any, rough: Any) -> None:
    z, s = rough
    before = z.copy(), s.copy()
    first, second = score(z, s, seed=3), score(z, s, seed=3)
    assert (first, first.low, first.high, first.baseline) == (
        second,
        second.low,
        second.high,
        second.baseline,
    )
    assert np.array_equal(z, before[0])
    assert np.array_equal(s, before[1])
    assert first.low <= first <= first.high
    assert (first.per_factor is None) != (first.per_latent is None)
