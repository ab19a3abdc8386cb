"""`check_conditional` names the law that a broken conditional breaks."""

from __future__ import annotations

import pytest
import torch

from demix import Box, DemixError, Laplace, Normal, Real, Sphere, VonMisesFisher
from demix import check_conditional as check
from demix.distributions.base import Similarity


class DrawsHalfOfThem(VonMisesFisher):
    def sample(self, anchors, *, generator=None):
        return super().sample(anchors, generator=generator)[::2]


class LeavesTheSphere(VonMisesFisher):
    def sample(self, anchors, *, generator=None):
        return 1.1 * super().sample(anchors, generator=generator)


class IgnoresTheGenerator(VonMisesFisher):
    def sample(self, anchors, *, generator=None):
        return super().sample(anchors)


class KeepsCoordinatesApart(Laplace):
    def log_prob(self, z, anchors):
        return super().log_prob(z, anchors)[:, None].expand_as(z)


class PrefersTheOtherPole(VonMisesFisher):
    def log_prob(self, z, anchors):
        return super().log_prob(z, -anchors)


class ClaimsAnotherRate(VonMisesFisher):
    similarity = Similarity("dot", 7.0)


class ClaimsAnotherPower(Normal):
    similarity = Similarity(1.0, 2.0)


class IsNotNormalised(VonMisesFisher):
    def log_prob(self, z, anchors):
        return super().log_prob(z, anchors) + 0.5


class DrawsTooNarrowly(VonMisesFisher):
    def sample(self, anchors, *, generator=None):
        return VonMisesFisher(self.space, 2 * self.kappa).sample(anchors, generator=generator)


class ForgetsToTruncate(Normal):
    def log_prob(self, z, anchors):
        return Normal(Real(self.space.dim), self.sigma).log_prob(z, anchors)


class MisjudgesItsEntropy(Laplace):
    def mean_entropy(self):
        return super().mean_entropy() + 0.2


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (DrawsHalfOfThem(Sphere(4), 5.0), "one positive per anchor"),
        (LeavesTheSphere(Sphere(4), 5.0), "samples must lie in the space"),
        (IgnoresTheGenerator(Sphere(4), 5.0), "driven by the generator alone"),
        (KeepsCoordinatesApart(Box(3), 0.1), "one number per row"),
        (PrefersTheOtherPole(Sphere(4), 5.0), "the mode must be at the anchor"),
        (ClaimsAnotherRate(Sphere(4), 5.0), "similarity must match log_prob"),
        (ClaimsAnotherPower(Box(3), 0.5), "similarity must match log_prob"),
        (IsNotNormalised(Sphere(4), 5.0), "samples, log_prob and mean_entropy must agree"),
        (DrawsTooNarrowly(Sphere(4), 5.0), "samples, log_prob and mean_entropy must agree"),
        (ForgetsToTruncate(Box(3), 0.5), "samples, log_prob and mean_entropy must agree"),
        (MisjudgesItsEntropy(Box(3), 0.1), "samples, log_prob and mean_entropy must agree"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_law_is_named(broken, law, seed):
    with pytest.raises(DemixError, match=f"breaks the contract of a conditional: .*{law}"):
        check(broken, seed=seed)


def test_an_inexact_similarity_need_not_match():
    class Resembles(VonMisesFisher):
        similarity = Similarity("dot", 7.0, exact=False)

    check(Resembles(Sphere(4), 5.0))


def test_the_global_random_state_is_left_alone():
    before = torch.random.get_rng_state()
    check(VonMisesFisher(Sphere(3), 2.0))
    assert torch.equal(before, torch.random.get_rng_state())


def test_what_cannot_be_checked_is_explained():
    with pytest.raises(DemixError, match="no uniform distribution"):
        check(Normal(Real(2), 0.1))
    with pytest.raises(DemixError, match="density is not known"):
        check(Normal(Sphere(3), 0.1))
