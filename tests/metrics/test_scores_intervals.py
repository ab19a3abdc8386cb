"""Intervals are those of the bootstrap: they cover, and shrink with the root of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import r2_score

from demix import affine_r2, all_scores, mean_correlation
from demix.metrics.blocks import exchangeable
from demix.metrics.information import mutual_information_gap
from demix.metrics.readout import explicitness, linear_accuracy
from demix.metrics.regression import isometry_error
from demix.metrics.score import SLOWEST, Meaning, scored
from demix.metrics.statistic import Statistic, r2_of
from demix.papers.reizinger2024.orthogonality import orthogonality_error
from demix.papers.reizinger2024.prototypes import prototypes_r2


def noisy(seed: int, samples: int, dim: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Latents that correlate 0.8 with their factors."""
    s, noise = np.random.default_rng(seed).normal(size=(2, samples, dim))
    return s + 0.75 * noise, s


def shifted(seed: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes whose means are two standard deviations apart."""
    random = np.random.default_rng(seed)
    s = random.integers(0, 2, size=(samples, 1))
    return 2.0 * s + random.normal(size=(samples, 1)), s


@pytest.fixture
def few_nulls(monkeypatch) -> None:
    """Draw chance as seldom as of the slowest scores: what is scored here is far above it."""
    monkeypatch.setattr("demix.metrics.score._NULL_ROWS", 0)
    monkeypatch.setattr("demix.metrics.score.SLOW", SLOWEST)


def covered(score: Any, sample: Any, truth: float, samples: int = 400) -> int:
    """How many of 40 intervals hold the truth."""
    found = [score(*sample(seed, samples), seed=seed) for seed in range(40)]
    return sum(one.low <= truth <= one.high for one in found)


@pytest.mark.usefixtures("few_nulls")
@pytest.mark.parametrize(
    ("score", "sample", "truth"),
    [
        (mean_correlation, noisy, 0.8),
        # Held out, the fitted map explains a little less.
        (affine_r2, noisy, 0.64 - 0.36 / 200),
        (linear_accuracy, shifted, norm.cdf(1)),
        (explicitness, shifted, norm.cdf(2**0.5)),
    ],
)
def test_intervals_cover(score: Any, sample: Any, truth: float) -> None:
    # 38 of 40, give or take three standard deviations.
    assert covered(score, sample, truth) >= 34


def test_the_interval_of_the_gap_covers_what_more_samples_find() -> None:
    truth = mutual_information_gap(*noisy(1000, 100_000))
    found = [mutual_information_gap(*noisy(seed, 2000)) for seed in range(40)]
    # Bins of 2000 samples are those of 100 000; what is left is the bias of counts.
    assert sum(one.low - 0.01 <= truth <= one.high + 0.01 for one in found) >= 35


def test_drawing_samples_anew_is_another_weighting() -> None:
    random = np.random.default_rng(0)
    target, error = random.normal(size=(2, 50, 3))
    weights = next(exchangeable(50, 0).weights(np.arange(50)))
    found = r2_of(error, target)(weights)
    for some, r2 in zip(weights[:5], found, strict=False):
        rows = np.repeat(np.arange(50), np.round(50 * some).astype(int))
        assert len(rows) == 50
        expected = r2_score(target[rows], (target - error)[rows], multioutput="raw_values")
        assert r2 == pytest.approx(expected)


def test_weights_are_drawn_in_pieces_for_many_samples() -> None:
    pieces = list(exchangeable(100_000, 0).weights(np.arange(100_000)))
    assert sum(len(piece) for piece in pieces) == 200
    assert max(piece.size for piece in pieces) <= 4_000_000
    assert np.concatenate([piece.sum(axis=1) for piece in pieces]) == pytest.approx(np.ones(200))


def test_a_mean_has_its_textbook_interval() -> None:
    x = np.random.default_rng(0).normal(size=4000)
    mean = Statistic(np.arange(4000), lambda weights: (weights @ x, (weights @ x)[:, None]))
    score = scored(lambda latents: mean, x, Meaning("", "", needs=()), exchangeable(4000, 0))
    assert score.high - score.low == pytest.approx(2 * 1.96 * x.std() / 4000**0.5, rel=0.15)


@pytest.mark.usefixtures("few_nulls")
def test_pairs_of_samples_vary_as_often_as_samples_are_drawn() -> None:
    found = [isometry_error(*noisy(seed, 400, 3), seed=seed) for seed in range(60)]
    scatter = np.std([float(score) for score in found])
    width = np.median([score.high - score.low for score in found])
    assert width == pytest.approx(2 * 1.96 * scatter, rel=0.4)


def test_intervals_shrink_with_the_root_of_the_samples(few_draws: None) -> None:
    names = ["affine_r2", "mean_correlation", "isometry_error", "explicitness", "modularity"]
    names += ["mutual_information_gap", "separated_predictability", "infomec_explicitness"]
    mixing = [[1.0, 0.4, 0.0], [0.0, 1.0, 0.4], [0.4, 0.0, 1.0]]
    width = {}
    for samples in (500, 8000):
        z, s = noisy(0, samples, 3)
        scores = all_scores(z @ mixing, s, only=names)
        width[samples] = {name: score.high - score.low for name, score in scores.items()}
    for name in names:
        assert width[8000][name] < width[500][name] / 2, name


def test_clusters_not_rows_are_drawn_anew() -> None:
    random = np.random.default_rng(0)
    v = random.normal(size=(40, 2))
    few = v + 0.5 * random.normal(size=v.shape)
    once, often = (
        prototypes_r2(few, v),
        prototypes_r2(np.repeat(few, 20, axis=0), v, np.repeat(range(40), 20)),
    )
    assert often == pytest.approx(once, abs=1e-9)
    assert (often.low, often.high) == pytest.approx((once.low, once.high), abs=1e-9)


def test_errors_have_intervals_too() -> None:
    z, s = noisy(0, 500, 3)
    score = orthogonality_error(z * [1, 2, 3], s)
    assert 0 < score.low < score < score.high
