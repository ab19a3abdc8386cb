"""The laws that every conditional keeps, and the marginals made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from demix import (
    Box,
    Conditional,
    DemixError,
    GeneralizedNormal,
    L1Ball,
    Laplace,
    Normal,
    Product,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
    check_conditional,
)
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher

BOX = Box(3, low=[0.0, -1.0, 2.0], high=[1.0, 1.0, 2.5])
ON_SPHERES = [
    *(VonMisesFisher(Sphere(n), k) for n in (2, 3, 10) for k in (0.01, 1.0, 10.0, 300.0)),
    GeneralizedVonMisesFisher(Sphere(3), 2.0, 0.5),
]
HEAVY_TAILED = GeneralizedVonMisesFisher(Sphere(3), 1.0, 0.3)
ON_BOXES = [
    *(Normal(space, sigma) for space in (Box(1), BOX) for sigma in (0.05, 1.0)),
    *(Laplace(space, scale) for space in (Box(1), BOX) for scale in (0.05, 1.0)),
    *(GeneralizedNormal(BOX, p, scale) for p in (0.7, 1.5, 3) for scale in (0.05, 1.0)),
    Laplace(BOX, 0.5, limit=0.3),
]
ON_LINES = [
    Normal(Real(3), 0.5),
    Laplace(Real(3), 0.5),
    *(GeneralizedNormal(Real(3), p, 0.5) for p in (0.7, 1.5, 3)),
    Laplace(Real(3), 0.5, limit=1.0),
    GeneralizedNormal(Real(3), 1.5, 0.5, limit=0.2),
]
PROJECTED = [
    Normal(Sphere(4), 0.2),
    Laplace(Sphere(3, radius=2.0), 0.2),
    GeneralizedNormal(Sphere(4), 1.5, 0.2),
    Laplace(Sphere(4), 0.2, limit=0.1),
]
BOUNDED = [*ON_SPHERES, *ON_BOXES]
WITH_DENSITY = [*BOUNDED, *ON_LINES]

every_conditional = pytest.mark.parametrize("conditional", [*WITH_DENSITY, *PROJECTED], ids=repr)
with_density = pytest.mark.parametrize("conditional", WITH_DENSITY, ids=repr)


def anchors_of(conditional: Conditional, size: int = 500, dtype=torch.float64) -> Tensor:
    """Anchors all over the space, its edge included."""
    generator = torch.Generator().manual_seed(0)
    space = conditional.space
    free = 2 * torch.randn((size, space.dim), generator=generator, dtype=dtype)
    return space.project(free)


def draw(conditional: Conditional, anchors: Tensor, seed: int = 1) -> Tensor:
    return conditional.sample(anchors, generator=torch.Generator().manual_seed(seed))


@every_conditional
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_positives_lie_in_the_space_one_per_anchor(conditional, dtype):
    anchors = anchors_of(conditional, dtype=dtype)
    positives = draw(conditional, anchors)
    assert positives.shape == anchors.shape
    assert positives.dtype == dtype
    assert conditional.space.contains(positives).all()
    assert conditional.sample(anchors[:0]).shape == anchors[:0].shape


@every_conditional
def test_the_generator_alone_decides(conditional):
    anchors = anchors_of(conditional, size=20)
    before = torch.random.get_rng_state()
    first, again, other = (draw(conditional, anchors, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())


@every_conditional
def test_single_precision_draws_the_same_distribution(conditional):
    narrow, wide = (
        draw(conditional, anchors_of(conditional, 1).to(dtype).expand(5000, -1), seed=3 + i)
        for i, dtype in enumerate((torch.float32, torch.float64))
    )
    for i in range(conditional.space.dim):
        assert stats.ks_2samp(narrow[:, i].double(), wide[:, i]).pvalue > 1e-4


@with_density
def test_the_mode_is_at_the_anchor(conditional):
    anchors = anchors_of(conditional)
    top = conditional.log_prob(anchors, anchors)
    assert top.shape == (len(anchors),)
    for seed in (1, 2):
        assert (conditional.log_prob(draw(conditional, anchors, seed), anchors) < top).all()
    nudged = conditional.space.project(anchors + 1e-3 * anchors.flip(0))
    assert (conditional.log_prob(nudged, anchors) <= top + 1e-12).all()


@with_density
def test_similarity_is_log_prob_up_to_a_constant(conditional):
    similarity = conditional.similarity
    # Noise with a limit has the form within it only.
    assert similarity.exact == math.isinf(getattr(conditional, "limit", math.inf))
    anchors = anchors_of(conditional)
    one, two = draw(conditional, anchors, 1), draw(conditional, anchors, 2)

    def implied(z: Tensor) -> Tensor:
        if similarity.kind == "dot":
            return similarity.rate * (z * anchors).sum(dim=1)
        return -similarity.rate * torch.cdist(z[:, None], anchors[:, None], p=similarity.kind)[
            :, 0, 0
        ].pow(similarity.kind)

    torch.testing.assert_close(
        conditional.log_prob(one, anchors) - conditional.log_prob(two, anchors),
        implied(one) - implied(two),
        rtol=1e-9,
        atol=1e-9,
    )


@with_density
def test_log_prob_in_single_precision_agrees_with_double(conditional):
    anchors = anchors_of(conditional)
    positives = draw(conditional, anchors)
    narrow = conditional.log_prob(positives.float(), anchors.float())
    assert narrow.dtype == torch.float32
    wide = conditional.log_prob(positives, anchors)
    torch.testing.assert_close(narrow.double(), wide, rtol=1e-4, atol=2e-3)


@with_density
def test_mean_entropy_is_the_mean_surprise(conditional):
    size, space = 20_000, conditional.space
    generator = torch.Generator().manual_seed(7)
    if space.bounded:
        anchors = space.project(space.uniform(size, generator=generator).double())
    else:
        anchors = torch.zeros((size, space.dim), dtype=torch.float64)
    surprise = -conditional.log_prob(draw(conditional, anchors, 8), anchors)
    error = 5 * float(surprise.std()) / math.sqrt(size)
    assert abs(float(surprise.mean()) - conditional.mean_entropy()) < error + 1e-9


@pytest.mark.parametrize("conditional", [*BOUNDED, HEAVY_TAILED], ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_conditional_keeps_the_contract(conditional, seed):
    check_conditional(conditional, seed=seed)


@pytest.mark.parametrize("conditional", PROJECTED, ids=repr)
def test_projected_noise_says_that_its_similarity_is_not_exact(conditional):
    # For small noise the cosine falls short of 1 by (n - 1) / 2 times the variance over r^2.
    similarity, sphere = conditional.similarity, conditional.space
    assert (similarity.kind, similarity.exact) == ("dot", False)
    small = type(conditional)(sphere, **small_noise(conditional))
    anchors = anchors_of(small, size=20_000)
    cosine = (anchors * draw(small, anchors)).sum(dim=1) / sphere.radius**2
    variance = 1 / (small.similarity.rate * sphere.radius**2)
    assert float(1 - cosine.mean()) == pytest.approx((sphere.dim - 1) / 2 * variance, rel=0.05)


def small_noise(conditional: GeneralizedNormal) -> dict[str, float]:
    if isinstance(conditional, Normal):
        return {"sigma": 0.01}
    return (
        {"scale": 0.01} if isinstance(conditional, Laplace) else {"p": conditional.p, "scale": 0.01}
    )


@every_conditional
def test_a_conditional_held_at_a_point_is_a_marginal(conditional):
    marginal = conditional.at()
    center = marginal.center
    assert marginal.space == conditional.space
    samples = marginal.sample(50, generator=torch.Generator().manual_seed(1))
    assert torch.equal(samples, draw(conditional, center.expand(50, -1)))
    if conditional not in PROJECTED:
        expected = conditional.log_prob(samples, center.expand_as(samples))
        assert torch.equal(marginal.log_prob(samples), expected)


@pytest.mark.parametrize(
    ("conditional", "center"),
    [
        (VonMisesFisher(Sphere(3), 1.0), [1.0, 0.0, 0.0]),
        (Normal(Sphere(2, radius=3.0), 1.0), [3.0, 0.0]),
        (Normal(Box(2), 1.0), [0.0, 0.0]),
        (Normal(Box(2, low=1.0, high=2.0), 1.0), [1.0, 1.0]),
        (Laplace(Real(2), 1.0), [0.0, 0.0]),
    ],
)
def test_marginals_centre_where_the_paper_puts_them(conditional, center):
    assert conditional.at().center.tolist() == center


@pytest.mark.parametrize("space", [Sphere(3), BOX, L1Ball(2), Product([Sphere(2), Box(1)])])
def test_the_uniform_marginal_has_the_density_of_the_volume(space):
    marginal = Uniform(space)
    samples = marginal.sample(20, generator=torch.Generator().manual_seed(0))
    assert torch.equal(samples, space.uniform(20, generator=torch.Generator().manual_seed(0)))
    np.testing.assert_allclose(marginal.log_prob(samples), -space.log_volume, rtol=1e-6)
    assert marginal.log_prob(samples + 10).tolist() == [-math.inf] * 20


def test_the_uniform_marginal_needs_a_bounded_space():
    with pytest.raises(DemixError, match=r"needs a bounded space, but got Real\(dim=2\)"):
        Uniform(Real(2))
