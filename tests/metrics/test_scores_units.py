"""No score depends on the units of columns, as far as it promises and float64 holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from demix import all_scores, probe
from demix.metrics.regression import isometry_error, orthogonal_r2
from demix.papers.reizinger2024.orthogonality import orthogonality_error
from demix.papers.reizinger2024.prototypes import prototypes_r2

# Scores that know one scale for all columns.
COMMON = {"orthogonal_r2", "isometry_error"}
UNITS = [1e-30, 1e-10, 1e7, 1e30]
SHIFTS = [1e6, 1e9, 1e12]


@pytest.fixture(scope="module")
def rough() -> tuple[np.ndarray, np.ndarray]:
    """Latents that are neither perfect nor nothing, and factors of both kinds."""
    random = np.random.default_rng(0)
    s = np.column_stack([random.normal(size=(600, 2)), random.integers(0, 3, size=600)])
    mixing = [[1.0, 0.3, 0.0], [0.0, 1.0, 0.5], [0.2, 0.0, 1.0]]
    return s @ mixing + 0.4 * random.normal(size=(600, 3)), s


def scores(z: np.ndarray, s: np.ndarray) -> dict[str, float]:
    found = all_scores(z, s, categorical=[2])
    return {name: float(score) for name, score in found.items() if name not in COMMON}


def assert_same(found: dict[str, float], expected: dict[str, float]) -> None:
    for name, score in found.items():
        # A last digit decides between splits of a tree, and where a logistic regression stops.
        loose = 1e-3 if "dci" in name or "explicitness" in name else 1e-6
        assert score == pytest.approx(expected[name], abs=loose), name


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_of_a_column_does_not_matter(unit: float, rough: Any) -> None:
    z, s = rough
    assert_same(scores(z * [1, unit, 1], s * [unit, 1, 1]), scores(z, s))


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_origin_of_a_column_does_not_matter(shift: float, rough: Any) -> None:
    z, s = rough
    away, off = np.array([0, shift, 0]), np.array([shift, 0, 0])
    far_z, far_s = z + away, s + off
    # The same numbers near 0: what float64 rounds off so far away is lost for both.
    assert_same(scores(far_z, far_s), scores(far_z - away, far_s - off))


@pytest.mark.parametrize("unit", [1e-90, 1e-30, 1e30, 1e90])
@pytest.mark.parametrize("score", [orthogonal_r2, orthogonality_error, isometry_error])
def test_a_common_unit_does_not_matter(score: Any, unit: float, rough: Any) -> None:
    z, s = rough
    assert score(unit * z, s) == pytest.approx(score(z, s), abs=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_of_a_prototype_does_not_matter(unit: float, rough: Any) -> None:
    z, s = rough[0][:40], rough[1][:40]
    found = prototypes_r2(z * [1, unit, 1], s)
    assert found == pytest.approx(prototypes_r2(z, s), abs=1e-6)


def test_a_constant_latent_is_worth_nothing_wherever_it_lies(rough: Any) -> None:
    z, s = rough
    alone = scores(z, s)
    # Whether the mean of equal numbers is that number depends on them.
    still = scores(np.column_stack([z, np.full(len(z), 0.1)]), s)
    for name in ("affine_r2", "mean_correlation", "factor_vae_score", "separated_predictability"):
        assert still[name] == pytest.approx(alone[name], abs=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1e-300, 1e-40, 1e-37, 1e37, 1e99])
def test_no_unit_hides_a_factor_from_a_probe(unit: float, kind: Any, rough: Any) -> None:
    z, s = rough[0].astype(kind), rough[1]

    def r(features: np.ndarray, factor: np.ndarray) -> float:
        return probe(features, {"size": factor})["size"].read_out.scores["r"].value

    assert r(z, unit * s[:, 0]) == pytest.approx(r(z, s[:, 0]), abs=1e-6)
    least, most = float(np.finfo(kind).smallest_subnormal), float(np.finfo(kind).max)
    if 1e4 * least < unit < most / 10:
        assert r((rough[0] * unit).astype(kind), s[:, 0]) == pytest.approx(r(z, s[:, 0]), abs=1e-6)
