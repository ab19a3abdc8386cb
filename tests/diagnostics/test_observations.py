"""What latents leave open of the observations, noise of series, and views that are copies."""

from __future__ import annotations

import numpy as np
import pytest

from demix.diagnostics.model_checks import LAGS, injectivity, linear_views, observation_noise
from demix.spaces.kinds import Box, Sphere


def columns(z, count, seed=0):
    """Mix factors smoothly into many columns."""
    random = np.random.default_rng(seed)
    straight, bent = random.normal(size=(2, z.shape[1], count))
    return np.tanh(z @ bent + random.normal(size=count)) + 0.3 * z @ straight


def noisy(x, share, seed=1):
    return x + share * x.std(axis=0) * np.random.default_rng(seed).normal(size=x.shape)


@pytest.fixture(scope="module")
def factors():
    return np.random.default_rng(0).random((2000, 3))


@pytest.mark.parametrize("count", [3, 20])
def test_an_injective_mixing_leaves_nothing_open(factors, count):
    found = injectivity(columns(factors, count), factors, Box(3))
    assert found.verdict == "pass"
    assert found.statistic < 0.005


def test_a_factor_that_latents_lack_is_seen(factors):
    for count in (4, 20):
        assert injectivity(columns(factors, count), factors[:, :2], Box(2)).verdict == "fail"


def test_noise_counts_by_what_it_can_do_to_the_latents(factors):
    """In many columns noise averages out; in few it is in the latents, too."""
    many = injectivity(noisy(columns(factors, 20), 0.25), factors, Box(3))
    few = injectivity(noisy(columns(factors, 4), 0.25), factors, Box(3))
    assert many.verdict == "pass"
    assert many.details["left_open"] > 0.04
    assert few.verdict == "fail"


def test_noise_that_leaves_a_sphere_is_seen():
    z = np.random.default_rng(0).normal(size=(2000, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    for share, verdict in ((0.0, "pass"), (0.4, "fail")):
        x = noisy(z, share)
        latents = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert injectivity(x, latents, Sphere(3)).verdict == verdict


def test_units_and_copies_of_columns_change_nothing(factors):
    x = noisy(columns(factors, 6), 0.2)
    other = np.column_stack([1000 * x + 7, np.ones(len(x))])
    first, second = (injectivity(rows, factors, Box(3)).statistic for rows in (x, other))
    assert first == pytest.approx(second, rel=1e-6)


def test_rows_that_do_not_vary_are_not_judged(factors):
    assert injectivity(np.ones((2000, 3)), factors, Box(3)).verdict == "skipped"


def moving(decays, rows, seed=0):
    """Return AR(1) series of unit variance, a column for each decay."""
    random, z = np.random.default_rng(seed), np.zeros((rows, len(decays)))
    for t in range(1, rows):
        z[t] = decays * z[t - 1] + np.sqrt(1 - decays**2) * random.normal(size=len(decays))
    return z


def following(z):
    first = np.arange(len(z) - LAGS)
    return np.stack([z[first + k] for k in range(1 + LAGS)], axis=1)


@pytest.mark.parametrize("decay", [0.9, 0.99])
def test_noise_of_a_series_is_measured(decay):
    z = moving(np.full(3, decay), 6000)
    assert observation_noise(following(z)).statistic < 0.01
    found = observation_noise(following(noisy(z, 0.5)))
    assert found.verdict == "fail"
    assert found.statistic == pytest.approx(0.25 / 1.25, abs=0.05)


def test_several_time_constants_are_not_taken_for_noise():
    z = moving(np.exp(-1 / np.array([2.0, 8.0, 30.0, 100.0])), 6000)
    assert observation_noise(following(z)).verdict == "pass"


def test_noise_of_a_series_without_memory_is_not_judged():
    z = np.random.default_rng(0).normal(size=(500, 2))
    assert observation_noise(following(z)).verdict == "skipped"


def test_latents_that_are_linear_in_the_observations_are_named(factors):
    assert linear_views(factors, factors @ np.diag([1.0, -2.0, 3.0])).verdict == "warn"
    assert linear_views(factors, np.cos(6 * factors)).verdict == "pass"
    assert linear_views(factors[:10], factors[:10]).verdict == "skipped"
