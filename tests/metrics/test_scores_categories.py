"""Categories are scored as categories, and read out as their definitions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.neighbors import NearestCentroid

from demix import DemixError, all_scores
from demix.metrics.blocks import exchangeable
from demix.metrics.factors import check_factors
from demix.metrics.information import modularity, mutual_information_gap
from demix.metrics.readout import explicitness, linear_accuracy, separated_predictability


def categories(table: Any) -> list[int]:
    """The columns that are taken for categories."""
    return np.flatnonzero(check_factors(np.zeros((len(table), 1)), table)[1].categorical).tolist()


def kinds(samples: int = 1200, classes: int = 3, factors: int = 2) -> np.ndarray:
    """Categories of equal size in all combinations."""
    grid = np.indices((classes,) * factors).reshape(factors, -1).T
    return np.random.default_rng(0).permutation(np.tile(grid, (samples // len(grid) + 1, 1)))


def test_numbers_of_categories_in_one_latent_each() -> None:
    s = kinds()
    scores = all_scores(s[:, ::-1] * 2.0 - 1, s)
    assert "affine_r2" not in scores
    for name, score in scores.items():
        if name == "explicitness":
            # The middle one of three in a row is on neither side of a point: (1 + 1/2 + 1) / 3.
            assert score == pytest.approx(5 / 6, abs=0.03)
        else:
            assert score == pytest.approx(1, abs=0.06 if "sep" in name else 0.02), name


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_one_latent_for_each_category() -> None:
    s = kinds()
    z = np.hstack([np.eye(3)[s[:, 0]], np.eye(3)[s[:, 1]]])
    scores = all_scores(z, s)
    for name in ("explicitness", "linear_accuracy", "infomec_explicitness", "modularity"):
        assert scores[name] == pytest.approx(1, abs=0.01), name
    # Three latents tell equally much of a factor.
    assert scores["mutual_information_gap"] == pytest.approx(0, abs=0.02)
    assert scores["infomec_compactness"] == pytest.approx((1 / 3 - 1 / 6) / (1 - 1 / 6), abs=0.02)
    assert scores["linear_accuracy"].baseline == pytest.approx(1 / 3, abs=0.07)


def test_the_rule_for_categories() -> None:
    random = np.random.default_rng(0)
    table = np.column_stack(
        [
            random.normal(size=300),
            random.integers(0, 20, size=300),
            random.integers(0, 200, size=300),
            random.integers(0, 2, size=300),
            random.integers(0, 3, size=300) / 2,
        ]
    )
    assert categories(table) == [1, 3]
    assert categories(table[:, [1, 3]].astype(int)) == [0, 1]
    assert categories(torch.from_numpy(table)) == [1, 3]
    assert categories(table[:, [0]] > 0) == [0]
    mixed = table.astype(object)
    mixed[:, 0] = np.where(table[:, 0] > 0, "up", "down")
    assert categories(mixed) == [0, 1, 3]


def test_the_rule_can_be_overruled() -> None:
    s = kinds()
    z = s + 0.1 * np.random.default_rng(0).normal(size=s.shape)
    assert "affine_r2" in all_scores(z, s, categorical=[], only=["affine_r2"])
    chosen = all_scores(z, s, categorical=[1], only=["affine_r2", "linear_accuracy"])
    assert [len(score.per_factor) for score in chosen.values()] == [1, 1]
    assert len(linear_accuracy(z, s, categorical=[0]).per_factor) == 1


def test_accuracy_agrees_with_logistic_regression() -> None:
    s = kinds()[:, :1]
    z = np.eye(3)[s[:, 0]] + 0.8 * np.random.default_rng(1).normal(size=(len(s), 3))
    fit, test = exchangeable(len(s), 0).halves()
    model = LogisticRegression(C=1e4).fit(z[fit], s[fit, 0])
    assert linear_accuracy(z, s) == pytest.approx(model.score(z[test], s[test, 0]), abs=0.005)


@pytest.mark.parametrize("categorical", [True, False])
def test_explicitness_agrees_with_areas_written_out(categorical: bool) -> None:
    random = np.random.default_rng(1)
    s = kinds()[:, :1] if categorical else random.normal(size=(1200, 1))
    z = s + random.normal(size=(len(s), 3))
    edges = np.quantile(s, [0.25, 0.5, 0.75])
    targets = [s[:, 0] == k for k in range(3)] if categorical else [s[:, 0] > e for e in edges]
    fit, test = exchangeable(len(s), 0).halves()
    areas = [
        roc_auc_score(
            y[test], LogisticRegression(C=1e4).fit(z[fit], y[fit]).decision_function(z[test])
        )
        for y in targets
    ]
    assert explicitness(z, s) == pytest.approx(np.mean(areas), abs=0.002)


@pytest.mark.parametrize("categorical", [True, False])
def test_separated_predictability_agrees_with_its_definition(categorical: bool) -> None:
    random = np.random.default_rng(1)
    s = kinds()[:, :1] if categorical else random.normal(size=(1200, 1))
    z = s * [1.0, 0.6, 0.1] + random.normal(size=(len(s), 3))
    fit, test = exchangeable(len(s), 0).halves()
    told = []
    for j in range(3):
        if categorical:
            model = NearestCentroid().fit(z[fit][:, [j]], s[fit, 0])
            right = balanced_accuracy_score(
                s[test, 0], model.predict(z[test][:, [j]]), adjusted=True
            )
        else:
            model = LinearRegression().fit(z[fit][:, [j]], s[fit, 0])
            right = r2_score(s[test, 0], model.predict(z[test][:, [j]]))
        told.append(max(right, 0))
    second, best = sorted(told)[-2:]
    assert separated_predictability(z, s) == pytest.approx(best - second, abs=1e-9)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_categories_that_one_half_lacks_are_no_obstacle() -> None:
    random = np.random.default_rng(0)
    s = np.column_stack([np.r_[0, np.repeat([1, 2, 3], 40)], random.normal(size=121)])
    z = s + 0.1 * random.normal(size=s.shape)
    for seed in range(3):
        assert all(np.isfinite(score) for score in all_scores(z, s, seed=seed).values())


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_one_factor_and_few_rows() -> None:
    s = np.arange(12.0)[:, None] % 2
    assert all(np.isfinite(score) for score in all_scores(s, s).values())


@pytest.mark.parametrize("score", [mutual_information_gap, modularity, explicitness])
def test_what_cannot_be_scored(score) -> None:
    z = np.random.default_rng(0).normal(size=(60, 2))
    named = z.astype(object)
    named[:, 1] = [f"row {i}" for i in range(60)]
    with pytest.raises(DemixError, match=r"column 1 of factors .* has 60 of them in 60 rows; drop"):
        score(z, named)
    with pytest.raises(DemixError, match=r"list columns 0..1 of factors, but holds 2, -1"):
        score(z, z, categorical=[0, 2, -1])
    with pytest.raises(DemixError, match="must be finite"):
        score(z, np.where(z > 2, np.nan, z))
    with pytest.raises(DemixError, match="is constant"):
        score(z, np.full((60, 1), "same"))
    odd = z.astype(object)
    odd[3, 1] = "x"
    with pytest.raises(DemixError, match="numbers or text throughout, but column 1"):
        score(z, odd)
    with pytest.raises(DemixError, match="latents must be an array of numbers"):
        score(np.full((60, 2), "a"), z)


def test_accuracy_needs_a_category() -> None:
    z = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(DemixError, match=r"needs a categorical factor.*affine_r2"):
        linear_accuracy(z, z)
