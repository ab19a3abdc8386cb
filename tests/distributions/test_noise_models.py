"""Noise models are uniform in their own quantiles, and found again from their samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from demix import Box, DemixError, GeneralizedNormal, Normal, Real, Sphere, VonMisesFisher
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher

MODELS = {
    "vMF": GeneralizedVonMisesFisher(Sphere(4), 2.0, math.sqrt(2 / 20)),
    "vMF, exact": VonMisesFisher(Sphere(4), 20.0),
    "heavy tails on a sphere": GeneralizedVonMisesFisher(Sphere(3), 1.0, 0.2),
    "circle": GeneralizedVonMisesFisher(Sphere(2), 2.0, 0.4),
    "Laplace in a box": GeneralizedNormal(Box(2, high=[1.0, 2.0]), 1.0, 0.1),
    "p = 3 in a box": GeneralizedNormal(Box(2), 3.0, 0.3),
    "normal": GeneralizedNormal(Real(2), 2.0, 1.0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def pairs(model, count=4000):
    generator = torch.Generator().manual_seed(0)
    if model.space.bounded:
        z = model.space.project(model.space.uniform(count, generator=generator).double())
    else:
        z = torch.randn((count, 2), dtype=torch.float64, generator=generator)
    return model.sample(z, generator=generator), z


@every_model
def test_sizes_of_its_own_samples_are_uniform(model):
    for column in model.quantiles(*pairs(model)).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


@every_model
def test_noise_has_no_direction(model):
    noise = model.residuals(*pairs(model)).numpy()
    error = noise.std(axis=0) / math.sqrt(len(noise))
    assert (np.abs(noise.mean(axis=0)) < 4.5 * error).all()


@every_model
def test_shape_and_scale_are_found_again(model):
    found = model.with_noise(2.0, 2 * model.scale).fitted(*pairs(model), shape=True)
    assert found.p == pytest.approx(model.p, rel=0.12)
    assert found.scale == pytest.approx(model.scale, rel=0.12)


@every_model
def test_a_generator_of_numpy_draws_from_the_same_distribution(model):
    z = pairs(model)[1]
    first, again = (model.sample(z, generator=np.random.default_rng(1)) for _ in range(2))
    assert torch.equal(first, again)
    for column in model.quantiles(first, z).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_on_a_sphere_it_is_von_mises_and_fishers():
    space = Sphere(5)
    z = space.uniform(4000, generator=torch.Generator().manual_seed(0))
    positives = VonMisesFisher(space, 20.0).sample(z, generator=torch.Generator().manual_seed(1))
    start = GeneralizedVonMisesFisher(space, 2.0, 0.5)
    found = start.fitted(positives.double(), z.double(), shape=False)
    assert found.kappa == pytest.approx(20, rel=0.05)
    for kappa in (5.0, 40.0):
        exact, tabulated = VonMisesFisher(space, kappa), start.with_noise(2, math.sqrt(2 / kappa))
        log_prob = exact.log_prob(positives, z)
        torch.testing.assert_close(tabulated.log_prob(positives, z), log_prob, rtol=0, atol=1e-3)
        assert tabulated.mean_entropy() == pytest.approx(exact.mean_entropy(), abs=1e-3)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("space", [Box(3), Real(3)])
def test_quantiles_are_the_distribution_function_of_scipy(space, p):
    z = torch.from_numpy(np.random.default_rng(0).random((500, 3)))
    model = GeneralizedNormal(space, p, 0.2)
    positives = model.sample(z, generator=np.random.default_rng(1))
    law = stats.gennorm(p, scale=0.2)
    low, high = (-z.numpy(), 1 - z.numpy()) if space.bounded else (-np.inf, np.inf)
    below = law.cdf(positives - z) - law.cdf(low)
    below /= law.cdf(high) - law.cdf(low)
    np.testing.assert_allclose(model.quantiles(positives, z), np.abs(2 * below - 1), atol=1e-9)
    np.testing.assert_allclose(model.residuals(positives, z), stats.norm.ppf(below), atol=1e-6)


def test_latents_that_do_not_differ_have_the_smallest_scale():
    z = torch.zeros(100, 2, dtype=torch.float64)
    for space in (Box(2), Real(2)):
        assert 0 < GeneralizedNormal(space, 2.0, 1e-6).fitted(z, z, shape=False).scale < 1e-6


def test_noise_below_the_resolution_of_the_table_stays_at_its_anchor():
    model = GeneralizedVonMisesFisher(Sphere(3), 2.0, 1e-8)
    z = Sphere(3).uniform(100, generator=torch.Generator().manual_seed(0)).double()
    assert float((model.sample(z) - z).norm(dim=1).max()) < 1e-5
    assert model.quantiles(z, z).tolist() == [[0.0]] * 100


def test_noise_that_is_projected_on_a_sphere_is_refused():
    z = Sphere(3).uniform(5)
    with pytest.raises(DemixError, match="density is not known"):
        Normal(Sphere(3), 0.1).quantiles(z, z)
