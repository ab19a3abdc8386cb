"""Generalised normal noise, truncated, free and projected, against scipy's distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from demix import Box, DemixError, GeneralizedNormal, L1Ball, Laplace, Normal, Real, Sphere

SIZE = 8_000
LEAST_P = 1e-4
BOX = Box(2, low=[0.0, -1.0], high=[1.0, 2.0])


def noise(name: str, space, scale: float):
    """Build the conditional and scipy's distribution of its noise."""
    if name == "normal":
        return Normal(space, sigma=scale), stats.norm(scale=scale)
    if name == "laplace":
        return Laplace(space, scale=scale), stats.laplace(scale=scale)
    return GeneralizedNormal(space, p=float(name), scale=scale), stats.gennorm(
        float(name), scale=scale
    )


every_noise = pytest.mark.parametrize("name", ["normal", "laplace", "0.7", "1.5", "3"])
every_scale = pytest.mark.parametrize("scale", [0.05, 2.0])
# Where the anchor lies, as a share of each side of the box.
every_anchor = pytest.mark.parametrize(
    "share", [0.5, 0.02, 0.0, 1.0], ids=["middle", "near", "low", "high"]
)


def quadrature(low: float, high: float, at: float, nodes: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss-Legendre on panels that shrink towards ``at``."""
    depths = [0, *np.geomspace(1e-6, high - low, 20)]
    cuts = np.unique(np.clip([at + sign * d for d in depths for sign in (-1, 1)], low, high))
    half, middle = np.diff(cuts)[:, None] / 2, (cuts[1:] + cuts[:-1])[:, None] / 2
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return (middle + half * points).ravel(), (half * weights).ravel()


def anchored(share: float) -> torch.Tensor:
    return BOX.low + share * (BOX.high - BOX.low)


@every_noise
@every_scale
@every_anchor
def test_each_coordinate_on_a_box_is_truncated_exactly(name, scale, share):
    conditional, law = noise(name, BOX, scale)
    anchor = anchored(share)
    samples = conditional.sample(
        anchor.expand(SIZE, -1), generator=torch.Generator().manual_seed(0)
    ).numpy()
    for i in range(2):
        a, low, high = (float(bound[i]) for bound in (anchor, BOX.low, BOX.high))
        below, above = law.cdf(low - a), law.cdf(high - a)
        seen = (law.cdf(samples[:, i] - a) - below) / (above - below)
        assert stats.kstest(seen, "uniform").pvalue > LEAST_P
        assert samples[:, i].min() >= low
        assert samples[:, i].max() <= high
    assert abs(np.corrcoef(samples.T)[0, 1]) < 5 / math.sqrt(SIZE)


@every_scale
@every_anchor
def test_the_truncated_normal_is_that_of_scipy(scale, share):
    anchor = anchored(share)
    samples = Normal(BOX, scale).sample(
        anchor.expand(SIZE, -1), generator=torch.Generator().manual_seed(1)
    )
    z = BOX.uniform(50, generator=torch.Generator().manual_seed(2)).double()
    expected = 0.0
    for i in range(2):
        ends = [(float(bound[i] - anchor[i])) / scale for bound in (BOX.low, BOX.high)]
        exact = stats.truncnorm(*ends, loc=float(anchor[i]), scale=scale)
        assert stats.kstest(samples[:, i].numpy(), exact.cdf).pvalue > LEAST_P
        expected = expected + exact.logpdf(z[:, i].numpy())
    log_prob = Normal(BOX, scale).log_prob(z, anchor.expand_as(z))
    np.testing.assert_allclose(log_prob, expected, rtol=1e-10, atol=1e-10)


@every_noise
@every_scale
def test_on_the_real_line_the_noise_is_free(name, scale):
    conditional, law = noise(name, Real(2), scale)
    anchors = torch.tensor([3.0, -1.0], dtype=torch.float64).expand(SIZE, -1)
    offset = conditional.sample(anchors, generator=torch.Generator().manual_seed(3)) - anchors
    for i in range(2):
        assert stats.kstest(offset[:, i].numpy(), law.cdf).pvalue > LEAST_P
    log_prob = conditional.log_prob(anchors + offset, anchors)
    expected = law.logpdf(offset.numpy()).sum(axis=1)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-9, atol=1e-9)
    assert conditional.mean_entropy() == pytest.approx(2 * float(law.entropy()), rel=1e-9)


@every_noise
@every_scale
@every_anchor
def test_density_on_a_box_is_normalised(name, scale, share):
    conditional, _ = noise(name, BOX, scale)
    anchor = anchored(share)
    (x, x_weight), (y, y_weight) = (
        map(torch.from_numpy, quadrature(float(BOX.low[i]), float(BOX.high[i]), float(anchor[i])))
        for i in range(2)
    )
    z = torch.cartesian_prod(x, y)
    density = conditional.log_prob(z, anchor.expand_as(z)).exp().reshape(len(x), len(y))
    assert float(x_weight @ density @ y_weight) == pytest.approx(1, rel=1e-6)


def test_density_is_zero_outside_the_box():
    outside = torch.tensor([[1.5, 0.0], [0.5, -1.5]])
    inside = torch.tensor([[0.5, 0.0], [0.5, 0.0]])
    for conditional in (Normal(BOX, 0.5), Laplace(BOX, 0.5)):
        assert conditional.log_prob(outside, inside).tolist() == [-math.inf] * 2


@every_noise
@every_scale
def test_mean_entropy_on_a_box_is_the_average_over_anchors(name, scale):
    conditional, law = noise(name, BOX, scale)

    def entropy(anchor: float, side: float) -> float:
        x, weight = quadrature(0, side, anchor)
        mass = law.cdf(side - anchor) - law.cdf(-anchor)
        return (
            -float(weight @ (law.pdf(x - anchor) * (law.logpdf(x - anchor) - np.log(mass)))) / mass
        )

    expected = 0.0
    for side in (1.0, 3.0):
        # The entropy is symmetric about the middle and bends most at the edge.
        anchors, weight = quadrature(0, side / 2, 0.0, nodes=4)
        expected += 2 * float(weight @ [entropy(anchor, side) for anchor in anchors]) / side
    assert conditional.mean_entropy() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_mean_entropy_of_the_truncated_normal_is_that_of_scipy(sigma):
    nodes, weights = np.polynomial.legendre.leggauss(100)
    anchors = (1 + nodes) / 2
    values = stats.truncnorm(-anchors / sigma, (1 - anchors) / sigma, scale=sigma).entropy()
    expected = 3 * float(weights @ values) / 2
    assert Normal(Box(3), sigma).mean_entropy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_projected_normal_noise_has_a_noncentral_t_cotangent(sigma, radius):
    sphere = Sphere(5, radius=radius)
    anchors = sphere.project(
        sphere.uniform(SIZE, generator=torch.Generator().manual_seed(0)).double()
    )
    positives = Normal(sphere, sigma).sample(anchors, generator=torch.Generator().manual_seed(1))
    cosine = (anchors * positives).sum(dim=1).numpy() / radius**2
    cotangent = cosine / np.sqrt(1 - cosine**2)
    law = stats.nct(df=4, nc=radius / sigma)
    assert stats.kstest(cotangent * 2, law.cdf).pvalue > LEAST_P


@pytest.mark.parametrize("name", ["laplace", "0.7", "1.5", "3"])
def test_projected_noise_is_free_noise_projected(name):
    sphere = Sphere(4, radius=2.0)
    conditional, law = noise(name, sphere, 0.4)
    anchor = sphere.project(torch.tensor([1.0, 2, 0, -1], dtype=torch.float64))
    positives = conditional.sample(
        anchor.expand(SIZE, -1), generator=torch.Generator().manual_seed(0)
    )
    assert sphere.contains(positives, atol=1e-12).all()
    free = anchor.numpy() + law.rvs(size=(SIZE, 4), random_state=np.random.default_rng(1))
    free *= 2 / np.linalg.norm(free, axis=1, keepdims=True)
    for i in range(4):
        assert stats.ks_2samp(positives[:, i].numpy(), free[:, i]).pvalue > LEAST_P


def test_noise_projected_on_a_sphere_has_no_known_density_or_entropy():
    conditional = Normal(Sphere(3), 0.1)
    z = Sphere(3).uniform(2)
    with pytest.raises(DemixError, match="density is not known; use VonMisesFisher"):
        conditional.log_prob(z, z)
    with pytest.raises(DemixError, match="entropy is not known"):
        conditional.mean_entropy()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(L1Ball(2), 0.1), r"defined on Real, Box and Sphere, but got L1Ball"),
        (lambda: Normal(Box(2), sigma=0.0), r"sigma of a normal must be positive.* got 0\.0"),
        (lambda: Laplace(Box(2), scale=-1.0), r"scale .*must be positive and finite, but got -1"),
        (lambda: GeneralizedNormal(Box(2), p=0, scale=1.0), "shape p .*must be positive.* got 0"),
        (lambda: GeneralizedNormal(Box(2), p=0.3, scale=1.0), r"needs p >= 0\.4, but got 0\.3"),
        (lambda: GeneralizedNormal(Box(2), p=2, scale=math.inf), "scale .*finite, but got inf"),
        (lambda: GeneralizedNormal(Box(2), p=math.nan, scale=1.0), "shape p .*finite, but got nan"),
    ],
)
def test_a_bad_argument_is_explained(make, message):
    with pytest.raises(DemixError, match=message):
        make()
