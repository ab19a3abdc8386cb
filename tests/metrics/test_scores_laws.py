"""Each score is invariant to what it leaves open, and to no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from demix import Score
from demix.metrics.dci import dci
from demix.metrics.information import infomec, modularity, mutual_information_gap
from demix.metrics.readout import (
    beta_vae_score,
    explicitness,
    factor_vae_score,
    linear_accuracy,
    separated_predictability,
)
from score_maps import invertible, signed_permutation, turn

SAMPLES = 800


# Functions that give several scores give those of one family.
MONOTONE = {
    "MIG": mutual_information_gap,
    "modularity": modularity,
    "InfoModularity, InfoCompactness": lambda *arrays, **options: infomec(*arrays, **options)[:2],
    "DCI": dci,
}
SCALES = {
    "SAP": separated_predictability,
    "beta-VAE": beta_vae_score,
    "FactorVAE": factor_vae_score,
}
AFFINE = {
    "explicitness": explicitness,
    "InfoExplicitness": lambda *arrays, **options: infomec(*arrays, **options).explicitness,
    "linear accuracy": linear_accuracy,
}


def several(found: Any) -> list[Score]:
    return [found] if isinstance(found, Score) else list(found)


def told(found: Any) -> list[tuple[float, float, float, float]]:
    return [(float(one), one.low, one.high, one.baseline) for one in several(found)]


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


@pytest.mark.usefixtures("few_draws")
@cases(MONOTONE)
def test_monotone_maps_of_each_latent_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    warped = np.column_stack([np.exp(z[:, 0]), z[:, 1] ** 3, np.arctan(z[:, 2]), 5 * z[:, 3] - 7])
    assert told(score(z, s)) == told(score(warped, s))


@cases(MONOTONE, SCALES)
def test_order_changes_nothing_but_the_draws_of_trees(score: Any, rough: Any) -> None:
    z, s = rough
    order, _ = signed_permutation(0, 4)
    loose = 0.05 if score is dci else 1e-9
    for moved, still in zip(several(score(z[:, order], s)), several(score(z, s)), strict=True):
        assert moved == pytest.approx(still, abs=loose)


@cases(SCALES)
def test_sign_scale_and_shift_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    moved = z * [-1e-3, 5, -70, 2] + [1, 2, 3, 4]
    assert score(moved, s) == pytest.approx(score(z, s), abs=1e-6)


@cases(MONOTONE)
def test_signs_change_hardly_anything(score: Any, rough: Any) -> None:
    # Bins and trees begin at the other end.
    z, s = rough
    for moved, still in zip(several(score(-z, s)), several(score(z, s)), strict=True):
        assert moved == pytest.approx(still, abs=0.06)


@cases(AFFINE)
def test_affine_maps_change_nothing(score: Any, rough: Any) -> None:
    z, s = rough
    moved = z @ invertible(0, 4) + [1, 2, 3, 4]
    # Logistic regression stops short of its optimum, and has a little penalty.
    assert score(moved, s) == pytest.approx(score(z, s), abs=0.01)


@cases(MONOTONE, SCALES)
def test_a_rotation_costs(score: Any) -> None:
    s = np.random.default_rng(0).uniform(-0.5, 0.5, size=(SAMPLES, 2))
    turned, straight = several(score(s @ turn(), s)), several(score(s, s))
    # Trees read a rotation out, and only blur it: informativeness, the third of DCI, stays.
    for less, more in zip(turned[:2], straight[:2], strict=True):
        assert less < more - 0.3


@cases(AFFINE)
def test_what_is_not_linear_costs(score: Any) -> None:
    s = np.sign(np.random.default_rng(0).normal(size=(SAMPLES, 2)))
    # Exclusive or: together the latents determine the first factor, but by no hyperplane.
    z = np.column_stack([s[:, 0] * s[:, 1], s[:, 1]])
    assert score(z, s) < score(s, s) - 0.2


@pytest.mark.usefixtures("few_draws")
@cases(MONOTONE, SCALES, AFFINE)
def test_neither_names_of_categories_nor_runs_matter(score: Any, rough: Any) -> None:
    z, s = rough
    before = z.copy(), s.copy()
    named = s.astype(object)
    named[:, 2] = np.array(["ball", "cone", "cube"])[s[:, 2].astype(int)]
    other = s.copy()
    other[:, 2] = np.array([-5.0, 3.0, 70.0])[s[:, 2].astype(int)]
    found = score(z, s, seed=3)
    assert told(score(z, named, seed=3)) == told(found)
    assert told(score(z, other, seed=3)) == told(found)
    assert np.array_equal(z, before[0])
    assert np.array_equal(s, before[1])
    for one in several(found):
        assert one.low <= one <= one.high
        assert (one.per_factor is None) != (one.per_latent is None)
