"""Laws agree with the distributions they stand for, and are found again from their samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from demix import Box, GeneralizedNormal, Real, Sphere, VonMisesFisher
from demix.diagnostics.laws import BoxLaw, SphereLaw

LAWS = {
    "vMF": SphereLaw(2.0, math.sqrt(2 / 20), 4),
    "heavy tails on a sphere": SphereLaw(1.0, 0.2, 3),
    "circle": SphereLaw(2.0, 0.4, 2),
    "Laplace in a box": BoxLaw(1.0, 0.1, np.array([1.0, 2.0])),
    "p = 3 in a box": BoxLaw(3.0, 0.3, np.ones(2)),
    "normal": BoxLaw(2.0, 1.0, np.full(2, np.inf)),
}


def pairs(law, count=4000):
    random = np.random.default_rng(0)
    z = law.uniform(count, random)
    z = random.normal(size=(count, 2)) if z is None else z
    return z, law.sample(z, random)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_sizes_of_its_own_samples_are_uniform(law):
    for column in law.sizes(*pairs(law)).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_noise_has_no_direction(law):
    noise = law.noise(*pairs(law))
    error = noise.std(axis=0) / math.sqrt(len(noise))
    assert (np.abs(noise.mean(axis=0)) < 4.5 * error).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_shape_and_scale_are_found_again(law):
    start = type(law)(**{**vars(law), "p": 2.0, "scale": 2 * law.scale})
    found = start.fitted(*pairs(law), shape=True)
    assert found.p == pytest.approx(law.p, rel=0.12)
    assert found.scale == pytest.approx(law.scale, rel=0.12)


def test_on_a_sphere_it_is_von_mises_and_fishers():
    space = Sphere(5)
    z = space.uniform(4000, generator=torch.Generator().manual_seed(0))
    positives = VonMisesFisher(space, 20.0).sample(z, generator=torch.Generator().manual_seed(1))
    first, second = z.double().numpy(), positives.double().numpy()
    law = SphereLaw(2.0, 0.5, 5).fitted(first, second, shape=False)
    assert law.kappa == pytest.approx(20, rel=0.05)
    # The same density up to a constant: that of the area of the sphere.
    ours = [SphereLaw(2.0, math.sqrt(2 / k), 5)._loss(first, second) for k in (5.0, 40.0)]
    theirs = [-float(VonMisesFisher(space, k).log_prob(positives, z).mean()) for k in (5.0, 40.0)]
    assert ours[1] - ours[0] == pytest.approx(theirs[1] - theirs[0], rel=1e-3)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("sides", [1.0, math.inf])
def test_elsewhere_it_is_the_generalised_normal(p, sides):
    z = np.random.default_rng(0).random((500, 3))
    law = BoxLaw(p, 0.2, np.full(3, sides))
    positives = law.sample(z, np.random.default_rng(1))
    space = Box(3) if sides == 1 else Real(3)
    dense = GeneralizedNormal(space, p, 0.2).log_prob(torch.tensor(positives), torch.tensor(z))
    assert law._loss(z, positives) * 3 == pytest.approx(-float(dense.mean()), rel=1e-6)
