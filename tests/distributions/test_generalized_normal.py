"""Generalised normal noise, truncated, free and projected, against scipy's distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from demix import Box, DemixError, GeneralizedNormal, L1Ball, Laplace, Normal, Real, Sphere

SIZE = 20_000
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
every_anchor = pytest.mark.parametrize("share", [0.5, 0.02, 0.0, 1.0], ids="middle near low high".split())


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
    for x, a, low, high in zip(samples.T, *map(np.asarray, (anchor, *BOX.bounds(anchor))), strict=True):
        below, above = law.cdf(low - a), law.cdf(high - a)
        assert (x >= low).all()
        assert (x <= high).all()
        share_below = (lambda t, a=a, b=below, c=above: (law.cdf(t - a) - b) / (c - b))
        assert stats.kstest(x, share_below).pvalue > LEAST_P
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
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def rule(i: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Gauss-Legendre on panels that meet at the anchor and shrink towards it."""
        low, high, a = float(BOX.low[i]), float(BOX.high[i]), float(anchor[i])
        depths = [0, *np.geomspace(1e-8, 4, 25)]
        cuts = sorted({min(max(a + sign * d, low), high) for d in depths for sign in (-1, 1)})
        panels = list(zip(cuts, cuts[1:], strict=False))
        points = np.concatenate([(s + e) / 2 + (e - s) / 2 * nodes for s, e in panels])
        sizes = np.concatenate([(e - s) / 2 * weights for s, e in panels])
        return torch.from_numpy(points), torch.from_numpy(sizes)

    (x, x_weight), (y, y_weight) = rule(0), rule(1)
    log_x, log_y = (
        conditional.log_prob(z, anchor.expand_as(z))
        for z in (
            torch.stack([x, anchor[1].expand_as(x)], dim=1),
            torch.stack([anchor[0].expand_as(y), y], dim=1),
        )
    )
    # Coordinates are independent, so p(x, y) = p(x, b) p(a, y) / p(a, b).
    at_anchor = conditional.log_prob(anchor[None], anchor[None])
    mass = (x_weight @ log_x.exp()) * (y_weight @ log_y.exp()) / at_anchor.exp()
    assert float(mass) == pytest.approx(1, rel=1e-6)
    z = BOX.uniform(20, generator=torch.Generator().manual_seed(0)).double()
    both = [torch.stack(pair, dim=1) for pair in ((z[:, 0], anchor[1].expand(20)), (anchor[0].expand(20), z[:, 1]))]
    separate = sum(conditional.log_prob(half, anchor.expand_as(half)) for half in both) - at_anchor
    torch.testing.assert_close(conditional.log_prob(z, anchor.expand_as(z)), separate)


def test_density_is_zero_outside_the_box():
    outside = torch.tensor([[1.5, 0.0], [0.5, -1.5]])
    inside = torch.tensor([[0.5, 0.0], [0.5, 0.0]])
    for conditional in (Normal(BOX, 0.5), Laplace(BOX, 0.5)):
        assert conditional.log_prob(outside, inside).tolist() == [-math.inf] * 2


@every_noise
@every_scale
def test_mean_entropy_on_a_box_is_the_average_over_anchors(name, scale):
    conditional, law = noise(name, BOX, scale)
    nodes, weights = np.polynomial.legendre.leggauss(12)

    def entropy(a: float, side: float) -> float:
        mass = law.cdf(side - a) - law.cdf(-a)
        ends = sorted({0.0, max(0.0, a - 8 * scale), a, min(side, a + 8 * scale), side})
        return sum(
            integrate.quad(
                lambda x: -(law.pdf(x - a) / mass) * (law.logpdf(x - a) - math.log(mass)), s, e
            )[0]
            for s, e in zip(ends, ends[1:], strict=False)
        )

    total = 0.0
    for side in (1.0, 3.0):
        cuts = sorted({0.0, min(scale, side / 6), min(5 * scale, side / 3), side / 2})
        for s, e in zip(cuts, cuts[1:], strict=False):
            values = [entropy((s + e) / 2 + (e - s) / 2 * node, side) for node in nodes]
            total += (e - s) * float(weights @ values) / side
    assert conditional.mean_entropy() == pytest.approx(total, abs=2e-4)


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
    anchors = sphere.project(sphere.uniform(SIZE, generator=torch.Generator().manual_seed(0)).double())
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
        (lambda: GeneralizedNormal(Box(2), p=2, scale=math.inf), "scale .*finite, but got inf"),
        (lambda: GeneralizedNormal(Box(2), p=math.nan, scale=1.0), "shape p .*finite, but got nan"),
    ],
)
def test_a_bad_argument_is_explained(make, message):
    with pytest.raises(DemixError, match=message):
        make()
