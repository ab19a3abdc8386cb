"""Stability tells what runs share from what they do not, and chance from both."""

from __future__ import annotations

import numpy as np
import pytest
from turns import EQUIVALENCES, NAMES, element, latents

from demix import Gain
from demix.diagnostics.consensus_result import verdict
from demix.diagnostics.maps import Stability, _order, mean_stability, stability
from demix.theory.setting import Equivalence

equivalences = pytest.mark.parametrize("equivalence", EQUIVALENCES, ids=NAMES)
LEARNT = Gain(1.0, 0.9, 1.1, ceiling=3.0, loss=1.0, sharpness=1.0, p_value=0.01)
IDLE = Gain(0.0, -0.1, 0.1, ceiling=3.0, loss=2.0, sharpness=0.1, p_value=0.4)


def measured(runs, equivalence, *, in_time=False):
    half = len(runs[0]) // 2
    parts = [run[:half] for run in runs], [run[half:] for run in runs]
    member = np.arange(len(runs[0]) - half) * 25 // (len(runs[0]) - half)
    return stability(*parts, member, equivalence, in_time=in_time), parts


def turned(runs, equivalence):
    maps = [element(equivalence, runs[0].shape[1], seed) for seed in range(len(runs))]
    return [run @ m + s for run, (m, s) in zip(runs, maps, strict=True)]


@equivalences
def test_runs_that_differ_by_the_equivalence_are_perfectly_stable(equivalence):
    z = latents(600, sphere=equivalence.sphere)
    found, _ = measured(turned([z, z, z], equivalence), equivalence)
    np.testing.assert_allclose(found.stability, 1, atol=1e-6)
    np.testing.assert_allclose(found.low, 1, atol=1e-6)
    assert (found.null < 0.2).all()


@equivalences
def test_runs_that_share_nothing_are_as_stable_as_chance(equivalence):
    found, _ = measured(
        [latents(2000, seed=s, sphere=equivalence.sphere) for s in range(4)], equivalence
    )
    assert (found.stability < 0.1).all()
    assert (found.null < 0.1).all()
    assert not verdict(found, [LEARNT] * 4, "", 0.0)[0].any()


@equivalences
def test_stability_does_not_depend_on_the_coordinates_of_the_runs(equivalence):
    random = np.random.default_rng(1)
    z = latents(600, sphere=equivalence.sphere)
    runs = [z + 0.2 * random.normal(size=z.shape) * z.std() for _ in range(3)]
    before, after = (
        measured(runs, equivalence)[0],
        measured(turned(runs, equivalence), equivalence)[0],
    )
    np.testing.assert_allclose(np.sort(after.stability), np.sort(before.stability), atol=2e-3)


@pytest.mark.parametrize("name", ["permutation", "affine"])
def test_one_dimension_that_runs_do_not_share_is_found(name):
    z = latents(2000)
    own = [latents(2000, dim=1, seed=9 + s) for s in range(4)]
    runs = [np.concatenate([z[:, :2], o], axis=1) for o in own]
    found, _ = measured(turned(runs, Equivalence(name)), Equivalence(name))
    stable, told = verdict(found, [LEARNT] * 4, Equivalence(name).words, 0.0)
    assert stable.sum() == 2
    assert found.stability[~stable] < 0.2
    assert told.startswith(f"Dimension {int(np.flatnonzero(~stable)[0]) + 1} of 3 is not stable")


def test_an_equivalence_that_is_too_small_finds_no_agreement():
    z = latents(1000)
    runs = turned([z, z, z], Equivalence("affine"))
    assert measured(runs, Equivalence("affine"))[0].stability.min() > 0.999
    assert measured(runs, Equivalence("permutation"))[0].stability.mean() < 0.9


@equivalences
def test_the_interval_covers_what_more_rows_give(equivalence):
    random = np.random.default_rng(2)

    def runs(rows):
        z = latents(rows, seed=4, sphere=equivalence.sphere)
        return [z + 0.3 * z.std() * random.normal(size=z.shape) for _ in range(5)]

    small, large = measured(runs(400), equivalence)[0], measured(runs(40_000), equivalence)[0]
    middle = large.stability.mean()
    assert small.low.min() < middle < small.high.max()
    assert (small.low < small.stability).all()
    assert (small.stability < small.high).all()
    assert (large.high - large.low < small.high - small.low).all()


@pytest.mark.parametrize("rows", [20, 21, 1000])
def test_the_null_of_a_series_keeps_neighbours_together(rows):
    """Shuffled one by one, rows of a slow series would make chance look smaller than it is."""
    random = np.random.default_rng(0)
    for _ in range(20):
        order = _order(rows, random, in_time=True)
        assert rows // 4 <= order[0] <= rows - rows // 4
        assert ((np.diff(order) - 1) % rows == 0).all()
    assert sorted(_order(rows, random, in_time=False)) == list(range(rows))


def test_the_short_measure_is_the_mean_of_the_long_one():
    z = latents(600)
    runs = [z + np.random.default_rng(s).normal(size=z.shape) for s in range(3)]
    found, parts = measured(runs, Equivalence("affine"))
    assert mean_stability(*parts, Equivalence("affine")) == pytest.approx(found.stability.mean())


@pytest.mark.parametrize(
    ("low", "gains", "untrained", "words"),
    [
        ([0.9, 0.95], [LEARNT] * 3, 0.1, "Stable up to an affine map: 3 runs agree on all 2"),
        ([0.9, 0.95], [LEARNT] * 3, 0.99, "untrained encoders agree as well"),
        ([0.9, 0.95], [LEARNT, LEARNT, IDLE], 0.1, "1 of them learnt nothing"),
        ([0.9, 0.95], [LEARNT, IDLE, IDLE], 0.1, "Not stable: 2 of 3 runs learnt nothing"),
        ([0.9, 0.5], [LEARNT] * 3, 0.1, "Dimension 2 of 2 is not stable"),
        ([0.3, 0.5], [LEARNT] * 3, 0.1, "Not stable: no dimension reaches"),
    ],
)
def test_the_verdict_is_one_sentence(low, gains, untrained, words):
    found = Stability(np.array(low), np.array(low), np.ones(2), np.zeros(2), np.empty((3, 2)))
    _, told = verdict(found, gains, "an affine map", untrained)
    assert words in told
    assert told.endswith(".")
    assert ". " not in told
