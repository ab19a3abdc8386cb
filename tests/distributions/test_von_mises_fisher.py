"""The von Mises-Fisher conditional, against closed forms, quadrature and scipy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats
from torch import Tensor

from demix import DemixError, Sphere, VonMisesFisher
from demix.distributions.von_mises_fisher import log_normaliser, mean_resultant_length
from demix.papers.zimmermann2021.pairs import mass_difference

SIZE = 20_000
LEAST_P = 1e-4
DIMS = [2, 3, 4, 10, 50]
KAPPAS = [0.01, 1.0, 10.0, 300.0]

every_member = pytest.mark.parametrize(("dim", "kappa"), [(n, k) for n in DIMS for k in KAPPAS])


def pairs(dim: int, kappa: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw anchors and their positives in float64."""
    sphere, generator = Sphere(dim), torch.Generator().manual_seed(seed)
    anchors = sphere.project(sphere.uniform(SIZE, generator=generator).double())
    return anchors, VonMisesFisher(sphere, kappa).sample(anchors, generator=generator)


def cosine_cdf(dim: int, kappa: float):
    """Integrate the density of the angle, e^(kappa cos) sin^(n-2), by the trapezoid rule."""
    angle = np.linspace(0, math.pi, 400_001)
    density = np.exp(kappa * (np.cos(angle) - 1)) * np.sin(angle) ** (dim - 2)
    mass = integrate.cumulative_trapezoid(density, angle, initial=0)
    return lambda cosine: 1 - np.interp(np.arccos(cosine), angle, mass / mass[-1])


def area(dim: int) -> float:
    return 2 * math.pi ** (dim / 2) / math.gamma(dim / 2)


@every_member
def test_the_cosine_follows_its_distribution_function(dim, kappa):
    anchors, positives = pairs(dim, kappa)
    cosine = (anchors * positives).sum(dim=1).clamp(-1, 1).numpy()
    assert stats.kstest(cosine, cosine_cdf(dim, kappa)).pvalue > LEAST_P
    error = 5 * cosine.std() / math.sqrt(SIZE)
    assert abs(cosine.mean() - mean_resultant_length(dim, kappa)) < error


@pytest.mark.parametrize("kappa", KAPPAS)
def test_on_the_ordinary_sphere_the_cosine_has_a_closed_form(kappa):
    anchors, positives = pairs(3, kappa, seed=1)
    cosine = (anchors * positives).sum(dim=1).numpy()

    def cdf(t):
        return np.expm1(-kappa * (1 + t)) * np.exp(kappa * (t - 1)) / np.expm1(-2 * kappa)

    assert stats.kstest(cosine, cdf).pvalue > LEAST_P


@pytest.mark.parametrize("kappa", KAPPAS)
def test_on_the_circle_the_signed_angle_is_von_mises(kappa):
    anchors, positives = (z.numpy() @ [1, 1j] for z in pairs(2, kappa, seed=2))
    angle = np.angle(positives / anchors)
    assert stats.kstest(angle, stats.vonmises(kappa).cdf).pvalue > LEAST_P


@every_member
def test_the_direction_away_from_the_anchor_is_uniform(dim, kappa):
    anchors, positives = pairs(dim, kappa, seed=3)
    fixed = torch.randn(dim, generator=torch.Generator().manual_seed(4), dtype=torch.float64)

    def tangent(vector: Tensor) -> Tensor:
        along = (vector * anchors).sum(dim=1, keepdim=True)
        return torch.nn.functional.normalize(vector - along * anchors, dim=1)

    seen = (tangent(positives) * tangent(fixed.expand_as(anchors))).sum(dim=1).numpy()
    if dim == 2:
        assert stats.binomtest(int((seen > 0).sum()), SIZE).pvalue > LEAST_P
    else:
        law = stats.beta((dim - 2) / 2, (dim - 2) / 2, loc=-1, scale=2)
        assert stats.kstest(seen, law.cdf).pvalue > LEAST_P


@every_member
def test_density_and_entropy_are_those_of_scipy(dim, kappa):
    conditional = VonMisesFisher(Sphere(dim), kappa)
    anchor = torch.nn.functional.normalize(torch.arange(1.0, dim + 1).double(), dim=0)
    z = pairs(dim, 1.0)[0][:20]
    exact = stats.vonmises_fisher(anchor.numpy(), kappa)
    log_prob = conditional.log_prob(z, anchor.expand_as(z))
    np.testing.assert_allclose(log_prob, exact.logpdf(z.numpy()), rtol=1e-10, atol=1e-9)
    assert conditional.mean_entropy() == pytest.approx(float(exact.entropy()), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_density_is_normalised_on_the_circle_and_the_sphere(kappa):
    angle = torch.arange(2000, dtype=torch.float64) * (2 * math.pi / 2000)
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    anchor = Sphere(2).project(torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    log_prob = VonMisesFisher(Sphere(2), kappa).log_prob(circle, anchor.expand_as(circle))
    assert float(log_prob.exp().mean()) * 2 * math.pi == pytest.approx(1, rel=1e-10)

    nodes, weights = (torch.from_numpy(values) for values in np.polynomial.legendre.leggauss(200))
    height, turn = torch.meshgrid(nodes, angle[::10], indexing="ij")
    across = (1 - height.square()).sqrt()
    sphere = torch.stack([across * turn.cos(), across * turn.sin(), height], dim=-1).reshape(-1, 3)
    anchor = Sphere(3).project(torch.tensor([[1.0, 2.0, -2.0]], dtype=torch.float64))
    log_prob = VonMisesFisher(Sphere(3), kappa).log_prob(sphere, anchor.expand_as(sphere))
    per_height = log_prob.exp().reshape(200, -1).mean(dim=1)
    assert float(weights @ per_height) * 2 * math.pi == pytest.approx(1, rel=1e-9)


def test_density_is_zero_off_the_sphere():
    off = torch.tensor([[0.5, 0.0, 0.0]])
    assert VonMisesFisher(Sphere(3), 1.0).log_prob(off, off).item() == -math.inf


@every_member
def test_normaliser_and_mean_are_the_integrals(dim, kappa):
    def density(angle, power):
        return (
            math.cos(angle) ** power
            * math.exp(kappa * (math.cos(angle) - 1))
            * (math.sin(angle) ** (dim - 2))
        )

    bends = [min(math.pi, x / math.sqrt(kappa)) for x in (0, 1, 3, 10)] + [math.pi]
    mass, mean = (
        sum(
            integrate.quad(density, *ends, args=(power,), epsabs=0, epsrel=1e-11)[0]
            for ends in pairwise(bends)
            if ends[0] < ends[1]
        )
        for power in (0, 1)
    )
    rest = math.log(area(dim - 1))
    assert log_normaliser(dim, kappa) == pytest.approx(math.log(mass) + kappa + rest, abs=1e-9)
    assert mean_resultant_length(dim, kappa) == pytest.approx(mean / mass, rel=1e-7)


@pytest.mark.parametrize("kappa", [1e-8, 0.01, 1.0, 50.0, 99.9, 100.0, 599.0, 601.0, 5000.0])
def test_normaliser_and_mean_in_closed_form(kappa):
    log_sinh = kappa + math.log(-math.expm1(-2 * kappa)) - math.log(2)
    sphere = math.log(4 * math.pi / kappa) + log_sinh
    assert log_normaliser(3, kappa) == pytest.approx(sphere, rel=1e-12)
    circle = math.log(2 * math.pi * special.i0e(kappa)) + kappa
    assert log_normaliser(2, kappa) == pytest.approx(circle, rel=1e-12)
    langevin = 1 / math.tanh(kappa) - 1 / kappa if kappa > 1e-3 else kappa / 3
    assert mean_resultant_length(3, kappa) == pytest.approx(langevin, rel=1e-9)


@pytest.mark.parametrize("dim", [*DIMS, 1024])
def test_limits_of_no_and_of_full_concentration(dim):
    assert log_normaliser(dim, 0.0) == pytest.approx(Sphere(dim).log_volume, rel=1e-12)
    assert mean_resultant_length(dim, 0.0) == 0
    assert mean_resultant_length(dim, 1e-6) == pytest.approx(1e-6 / dim, rel=1e-9)
    kappa = 1000.0 * dim
    assert mean_resultant_length(dim, kappa) == pytest.approx(1 - (dim - 1) / (2 * kappa), abs=1e-6)


@pytest.mark.parametrize("kappa", [0.5, 10.0, 99.999, 100.0, 300.0, 599.999, 600.0, 900.0])
@pytest.mark.parametrize("dim", [*DIMS, 512, 1024, 5000])
def test_the_mean_is_the_slope_of_the_normaliser(dim, kappa):
    step = 1e-3
    slope = (log_normaliser(dim, kappa + step) - log_normaliser(dim, kappa - step)) / (2 * step)
    assert mean_resultant_length(dim, kappa) == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(("dim", "kappa"), [(5000, 700.0), (2000, 650.0), (20_000, 3000.0)])
def test_the_normaliser_is_known_where_bessel_functions_underflow(dim, kappa):
    order = dim / 2 - 1
    assert special.ive(order, kappa) < 1e-290
    series = math.log(special.hyp0f1(order + 1, kappa**2 / 4)) - math.lgamma(order + 1)
    expected = dim / 2 * math.log(2 * math.pi) - order * math.log(2) + series
    assert log_normaliser(dim, kappa) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("dim", "kappa"), [(20_000, 10_000.0), (5000, 700.0), (3000, 1500.0)])
def test_the_mean_is_the_slope_of_the_normaliser_for_many_dimensions(dim, kappa):
    step = 1e-2 * kappa
    slope = (log_normaliser(dim, kappa + step) - log_normaliser(dim, kappa - step)) / (2 * step)
    assert mean_resultant_length(dim, kappa) == pytest.approx(slope, rel=1e-4)


@every_member
def test_mass_difference_is_the_mass_above_the_uniform_density(dim, kappa):
    conditional = VonMisesFisher(Sphere(dim), kappa)
    # Both densities are equal where kappa * cosine = log C - log |Z|.
    cosine = (log_normaliser(dim, kappa) - Sphere(dim).log_volume) / kappa
    expected = cosine_cdf(dim, 0.0)(cosine) - cosine_cdf(dim, kappa)(cosine)
    assert mass_difference(conditional) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("space", "kappa", "message"),
    [
        (Sphere(3, radius=2.0), 1.0, r"needs the unit sphere, but got Sphere\(dim=3, radius=2"),
        ("sphere", 1.0, "needs the unit sphere, but got 'sphere'"),
        (Sphere(3), 0.0, r"kappa .*must be positive and finite, but got 0\.0"),
        (Sphere(3), -1.0, r"kappa .*must be positive and finite, but got -1\.0"),
        (Sphere(3), math.inf, "kappa .*must be positive and finite, but got inf"),
        (Sphere(3), math.nan, "kappa .*must be positive and finite, but got nan"),
    ],
)
def test_a_bad_argument_is_explained(space, kappa, message):
    with pytest.raises(DemixError, match=message):
        VonMisesFisher(space, kappa)
