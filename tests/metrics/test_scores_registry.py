"""All scores at once are those that are defined, each of the factors it is about."""

from __future__ import annotations

import numpy as np
import pytest

from demix import DemixError, Score, all_scores, mean_correlation
from demix.metrics import registry
from demix.metrics.dci import dci
from demix.metrics.information import infomec

NUMBERS = {
    "affine_r2",
    "mean_correlation",
    "mean_correlation_spearman",
    "isometry_error",
}
BOTH = {
    "dci_disentanglement",
    "dci_completeness",
    "dci_informativeness",
    "mutual_information_gap",
    "separated_predictability",
    "modularity",
    "explicitness",
    "infomec_modularity",
    "infomec_compactness",
    "infomec_explicitness",
    "beta_vae_score",
    "factor_vae_score",
}


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    s = np.column_stack([random.normal(size=(200, 2)), random.integers(0, 3, size=200)])
    return s[:, [1, 0, 2]] + 0.1 * random.normal(size=s.shape), s


@pytest.fixture(scope="module")
def scores(arrays) -> dict[str, Score]:
    return all_scores(*arrays)


def test_which_scores_there_are(scores) -> None:
    assert set(scores) == NUMBERS | BOTH | {"linear_accuracy"}


def test_a_rotation_needs_as_many_latents_as_numbers(arrays) -> None:
    z, s = arrays
    assert "orthogonal_r2" in all_scores(z[:, :2], s, only=["orthogonal_r2"])
    assert "orthogonal_r2" not in all_scores(z, s, only=["orthogonal_r2"])


def test_each_score_is_of_its_own_kind_of_factors(scores) -> None:
    kinds = [False, False, True]
    for name, score in scores.items():
        columns = registry.scored_columns(name, kinds).tolist()
        expected = [0, 1] if name in NUMBERS else [0, 1, 2] if name in BOTH else [2]
        assert columns == expected
        if score.per_factor is not None and name != "isometry_error":
            assert len(score.per_factor) == len(columns)
            assert score == pytest.approx(score.per_factor.mean())
        if score.per_latent is not None:
            assert len(score.per_latent) == 3


def test_every_score_says_what_it_means(scores) -> None:
    for name, score in scores.items():
        assert len(score.certifies) > 10
        assert len(score.leaves_open) > 10
        assert score.low <= score <= score.high
        assert registry.label(name)
        assert score.best == (0 if name == "isometry_error" else 1)


def test_they_are_what_the_functions_give(arrays, scores) -> None:
    z, s = arrays
    assert scores["mean_correlation"] == mean_correlation(z, s[:, :2])
    assert scores["dci_completeness"] == dci(z, s).completeness
    assert scores["infomec_modularity"] == infomec(z, s).modularity


def test_some_scores_only_in_their_usual_order(arrays) -> None:
    calls = []
    found = all_scores(
        *arrays,
        only=["modularity", "affine_r2"],
        callback=lambda *progress: calls.append(progress),
    )
    assert list(found) == ["affine_r2", "modularity"]
    assert calls == [(0, 2, "affine R²"), (1, 2, "modularity")]
    with pytest.raises(DemixError, match="but got nonsense"):
        all_scores(*arrays, only=["nonsense"])


def test_slow_scores_take_a_part_of_very_many_samples(arrays, monkeypatch) -> None:
    z, s = arrays
    many = np.tile(z, (3, 1)), np.tile(s, (3, 1))
    whole = all_scores(*many, only=["affine_r2", "modularity"])
    monkeypatch.setattr(registry, "_ENOUGH", 300)
    part = all_scores(*many, only=["affine_r2", "modularity"])
    assert part["affine_r2"] == whole["affine_r2"]
    assert part["modularity"] != whole["modularity"]
