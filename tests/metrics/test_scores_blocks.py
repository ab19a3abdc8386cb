"""Rows that depend on each other: halves, redraws and chance keep blocks together."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from demix import DemixError, DemixWarning, affine_r2, all_scores, mean_correlation, probe
from demix.metrics.blocks import exchangeable, sampling_of, warn_if_alike
from demix.metrics.readout import separated_predictability
from demix.metrics.registry import RECOVERY
from demix.metrics.statistic import Statistic


def walks(seed: int, rows: int, dim: int, phi: float) -> tuple[np.ndarray, np.ndarray]:
    """Independent latents and factors, each an autoregression."""
    noise = np.random.default_rng(seed).normal(size=(2, rows, dim))
    noise[:, 0] /= (1 - phi**2) ** 0.5
    z, s = lfilter([1.0], [1.0, -phi], noise, axis=1)
    return z, s


def covers(score: Any) -> bool:
    return score.low <= score.baseline <= score.high


def test_halves_in_time_leave_a_gap_of_one_block() -> None:
    z, s = walks(0, 1000, 2, 0.5)
    fit, test = sampling_of(z, s, 100, 0).halves()
    assert np.array_equal(fit, np.arange(450))
    assert np.array_equal(test, np.arange(550, 1000))


def test_halves_of_blocks_share_none() -> None:
    z, s = walks(0, 1000, 2, 0.5)
    names = np.random.default_rng(0).choice(["ann", "bob", "cy", "di", "eve"], size=1000)
    fit, test = sampling_of(z, s, names, 0).halves()
    assert len(fit) + len(test) == 1000
    assert not set(names[fit]) & set(names[test])
    assert 300 < len(fit) < 700


@pytest.mark.parametrize("blocks", [50, np.repeat(np.arange(20), 50)])
def test_whole_blocks_are_redrawn(blocks: Any) -> None:
    z, s = walks(0, 1000, 2, 0.5)
    weights = np.concatenate(list(sampling_of(z, s, blocks, 0).weights(np.arange(1000))))
    assert weights.sum(axis=1) == pytest.approx(np.ones(200))
    assert np.array_equal(weights, np.repeat(weights[:, ::50], 50, axis=1))
    assert set(np.round(1000 * weights).ravel()) <= set(range(20))


def test_chance_shifts_blocks_as_a_whole() -> None:
    z, s = walks(0, 60, 1, 0.5)
    names = np.arange(60) % 6
    for order in sampling_of(z, s, names, 0).orders(5):
        assert np.array_equal(np.sort(order), np.arange(60))
        line = order[np.argsort(names, kind="stable")]
        assert (np.diff(names[line]) != 0).sum() <= 6
    for order in sampling_of(z, s, 10, 0).orders(7):
        assert (np.abs(np.diff(order)) <= 1).all()  # no jump in time
    shifts = list(sampling_of(z, s, 10, 0).orders(59, folded=False))
    assert {int(order[0]) for order in shifts} == set(range(1, 60))


@pytest.mark.parametrize("phi", [0.0, 0.9, 0.99])
def test_correlation_times_are_those_of_theory(phi: float) -> None:
    sampling = sampling_of(*walks(1, 40_000, 1, phi), "auto", 0)
    assert sampling.times == pytest.approx((1 + phi**2) / (1 - phi**2), rel=0.25)
    assert sampling.length == pytest.approx(3 * sampling.times, abs=1)


def test_rows_of_blocks_are_worth_what_they_differ_by() -> None:
    random = np.random.default_rng(0)
    members = np.repeat(np.arange(50), 20)
    each = random.normal(size=(50, 2))[members]
    assert sampling_of(each, each, members, 0).effective == pytest.approx(50, rel=0.1)
    free = random.normal(size=(1000, 2))
    assert sampling_of(free, each, members, 0).effective > 700


@pytest.mark.parametrize(("score", "phi"), [(affine_r2, 0.999), (mean_correlation, 0.99)])
def test_slow_series_that_share_nothing_score_by_chance(score: Any, phi: float) -> None:
    found = [score(*walks(seed, 500, 3, phi), blocks="auto") for seed in range(10)]
    assert sum(map(covers, found)) >= 8
    assert all(one.doubts.startswith("10 independent rows") for one in found)
    # Without blocks they are mistaken for recovered.
    assert np.median([score(*walks(seed, 500, 3, phi)) for seed in range(5)]) > 0.15


@pytest.mark.parametrize(
    ("score", "phi"),
    [(affine_r2, 0.0), (affine_r2, 0.9), (mean_correlation, 0.9), (separated_predictability, 0.9)],
)
def test_intervals_cover_chance(score: Any, phi: float) -> None:
    found = [score(*walks(seed, 300, 3, phi), blocks="auto") for seed in range(20)]
    assert 0.85 <= np.mean([covers(one) for one in found]) <= 1


def test_slow_series_that_share_something_are_found() -> None:
    z, s = walks(0, 2000, 3, 0.9)
    score = affine_r2(s @ [[1.0, 1, 0], [0, 1, 1], [1, 0, 1]] + 0.3 * z, s, blocks="auto")
    assert score.low > 0.7 > 0.1 > score.baseline
    assert 0 < score.high - score.low < 0.2


def test_chance_varies_little_with_the_seed() -> None:
    z, s = walks(0, 100, 3, 0.0)
    levels = [mean_correlation(z, s, seed=seed).baseline for seed in range(10)]
    assert np.std(levels) < 0.02


@pytest.mark.filterwarnings("ignore:Scores that cannot be trusted:demix.DemixWarning")
def test_every_score_takes_blocks(few_draws: None) -> None:
    random = np.random.default_rng(0)
    z, s = walks(0, 400, 3, 0.9)
    factors = np.column_stack([s, np.repeat(random.integers(0, 3, size=20), 20)])
    for blocks in (20, "auto", np.repeat(np.arange(20), 20)):
        for score in all_scores(z, factors, blocks=blocks).values():
            assert score.low <= score <= score.high
            assert np.isfinite([score.low, score.high, score.baseline]).all()
            assert pickle.loads(pickle.dumps(score)).trusted == score.trusted


def test_blocks_of_one_row_each_are_no_blocks() -> None:
    plain, own = exchangeable(50, 0), sampling_of(*walks(0, 50, 1, 0.0), np.arange(50), 0)
    rows = np.arange(50)
    assert np.array_equal(next(plain.weights(rows)), next(own.weights(rows)))
    mean = Statistic(rows, lambda weights: (weights @ rows, (weights @ rows)[:, None]))
    assert np.array_equal(mean.bootstrap(plain)[0], mean.bootstrap(own)[0])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (26, "from 1 to 25, of which 100 rows hold 4, but got 26"),
        (0, "but got 0"),
        ("often", "but got 'often'"),
        (True, "for each of 100 rows"),
        (np.arange(99), r"but got int64 of shape \(99,\)"),
        (np.repeat([1, 2, 3, 4], 25) % 3, "at least 4 of them, but got 3"),
        (np.r_[np.nan, np.arange(99.0)], "NaN"),
    ],
)
def test_blocks_that_are_none_are_refused(blocks: Any, message: str) -> None:
    with pytest.raises(DemixError, match=message):
        affine_r2(*walks(0, 100, 2, 0.0), blocks=blocks)


@pytest.mark.parametrize("rows", [50, 400])
def test_independent_rows_are_hardly_ever_taken_for_alike(rows: int) -> None:
    alarms = 0
    for seed in range(300):
        z, s = walks(seed, rows, 5, 0.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_alike(s, sampling_of(s, s, None, 0))
            warn_if_alike(z, sampling_of(z, s, None, 0))
        alarms += len(caught)
    assert alarms <= 3


def test_rows_that_are_alike_are_told_once() -> None:
    names = ["affine_r2", "mean_correlation"]
    z, s = walks(0, 400, 3, 0.6)
    with pytest.warns(DemixWarning, match=r"autocorrelation 0\.[56].*blocks=.auto.") as caught:
        all_scores(z, s, only=names)
    assert len(caught) == 1
    line = np.sort(np.random.default_rng(0).normal(size=(400, 1)), axis=0)
    with pytest.warns(DemixWarning, match="alike"):
        all_scores(line, line, only=names)
    with pytest.warns(DemixWarning, match="alike"):
        probe(z, s)
    # Of latents alone it does not matter, and with blocks it is taken into account.
    all_scores(z, np.random.default_rng(0).normal(size=(400, 3)), only=names)
    all_scores(z, s, only=names, blocks="auto")


def test_scores_say_when_they_cannot_be_trusted() -> None:
    random = np.random.default_rng(0)
    s = random.normal(size=(200, 2))
    wide = random.normal(size=(200, 5))
    alike = s @ [[1.0, 0.9], [0.0, 0.3]]
    assert mean_correlation(s, s).doubts == ""
    assert "at most 2 latents" in mean_correlation(s, s).trusted
    assert "here 5 latents for 2 factors" in mean_correlation(wide, s).doubts
    assert affine_r2(wide, s).doubts == ""
    assert "correlate by 0.9" in mean_correlation(alike, alike).doubts
    assert affine_r2(alike, alike).doubts == ""
    assert "here 9 for 2 latents" in affine_r2(s[:18], s[:18]).doubts
    with pytest.warns(DemixWarning, match="MCC .Pearson., MCC .Spearman. .factors that") as caught:
        all_scores(alike, alike, only=[*RECOVERY[:1], *RECOVERY[2:4]])
    assert len(caught) == 1


def test_probes_of_slow_series_find_nothing_by_chance() -> None:
    found = [probe(*walks(seed, 600, 3, 0.97), blocks="auto") for seed in range(15)]
    p = [one.read_out.p for each in found for one in each.factors]
    assert np.mean(np.array(p) < 0.05) < 0.2
    train, validation, test = found[0].split
    assert train.max() < validation.min() < validation.max() < test.min()
    assert found[0].effective < 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        naive = [probe(*walks(seed, 600, 3, 0.97)) for seed in range(5)]
    assert np.mean([one.read_out.p < 0.05 for each in naive for one in each.factors]) > 0.4
