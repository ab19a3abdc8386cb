"""`check_space` accepts what keeps the contract and names what breaks it; bad arguments."""

from __future__ import annotations

import math

import pytest
import torch

from demix import Box, DemixError, L1Ball, Product, Space, Sphere, check_space


class ProjectDropsACoordinate(Box):
    def project(self, z):
        return super().project(z)[..., 1:]


class ProjectStaysOutside(Box):
    def project(self, z):
        return z


class ProjectMovesOn(Box):
    def project(self, z):
        return super().project(z) / 2


class ProjectTakesCorners(Box):
    def project(self, z):
        return super().project(z).round()


class ProjectTakesTheMiddle(Box):
    def project(self, z):
        return torch.where(self.contains(z)[..., None], z, torch.full_like(z, 0.5))


class SquashStaysOutside(Box):
    def squash(self, z):
        return 2 * torch.sigmoid(z)


class SquashDropsACoordinate(Sphere):
    def squash(self, z):
        return super().squash(z[..., 1:])


class SquashCutsTheGraph(Box):
    def squash(self, z):
        return super().squash(z).detach()


class SquashHasNoSlope(Box):
    def squash(self, z):
        return super().squash(z) + (z - z.detach()).abs().sqrt()


class ScaleDoesNotSpread(Sphere):
    def expand_scale(self, scale):
        return scale


class ConfigForgets(Sphere):
    def config(self):
        return {"dim": self.dim}


class ConfigChanges(Sphere):
    def config(self):
        return {"dim": self.dim + 1, "radius": self.radius}


class ConfigNamesAnother(Sphere):
    def config(self):
        return {"dim": self.dim, "size": self.radius}


class UniformDropsACoordinate(Box):
    def uniform(self, size, *, generator=None):
        return super().uniform(size, generator=generator)[:, 1:]


class UniformLeaves(Box):
    def uniform(self, size, *, generator=None):
        return super().uniform(size, generator=generator) + 0.1


class Halfspace(Space):
    """A space of a user, unbounded and written by the contract."""

    def __init__(self, dim):
        self.dim = dim

    log_volume = math.inf

    def uniform(self, size, *, generator=None):
        raise DemixError("A half-space has no uniform distribution.")

    def contains(self, z, atol=1e-5):
        return z[..., 0] >= -atol

    def project(self, z):
        return torch.cat([z[..., :1].clamp_min(0), z[..., 1:]], dim=-1)

    def squash(self, z):
        return torch.cat([torch.nn.functional.softplus(z[..., :1]), z[..., 1:]], dim=-1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_space_keeps_the_contract(space, seed):
    check_space(space, seed=seed)


def test_a_space_of_a_user_keeps_the_contract_alone_and_in_a_product():
    check_space(Halfspace(3))
    check_space(Product([Halfspace(2), Sphere(2)]))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (ProjectDropsACoordinate(3), "project must keep the shape"),
        (ProjectStaysOutside(3), "projected points must lie in the space"),
        (ProjectMovesOn(3), "project must be idempotent"),
        (ProjectTakesCorners(3), "project must not move points of the space"),
        (ProjectTakesTheMiddle(3), "project must return the nearest point"),
        (SquashStaysOutside(3), "squashed points must lie in the space"),
        (SquashDropsACoordinate(3), "squash must keep the shape"),
        (SquashCutsTheGraph(3), "squash must be differentiable"),
        (SquashHasNoSlope(3), "squash must have a finite gradient"),
        (ScaleDoesNotSpread(3), "expand_scale must return one number per dimension"),
        (ConfigForgets(3, radius=2.0), "config must rebuild an equal space"),
        (ConfigChanges(3), "config must rebuild an equal space"),
        (UniformDropsACoordinate(3), "uniform must return"),
        (UniformLeaves(3), "uniform samples must lie in the space"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Space) else "",
)
def test_a_broken_law_is_named(broken, law):
    with pytest.raises(DemixError, match=rf"(?s){type(broken).__name__}.*contract.*: {law}"):
        check_space(broken)


def test_a_config_that_the_space_does_not_take_is_reported():
    with pytest.raises(DemixError, match=r"ConfigNamesAnother .*'size'"):
        check_space(ConfigNamesAnother(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sphere(1), "at least 2, but got 1"),
        (lambda: Sphere(3, radius=0.0), r"positive, finite radius, but got 0\.0"),
        (lambda: Sphere(3, radius=math.inf), "positive, finite radius, but got inf"),
        (lambda: Sphere(3, radius=1e-320), "positive, finite radius, but got 1e-320"),
        (lambda: Sphere(3, radius=math.nan), "positive, finite radius, but got nan"),
        (lambda: Box(0), "at least 1, but got 0"),
        (lambda: Box(2.0), r"whole dimension of at least 1, but got 2\.0"),
        (lambda: Box(True), "whole dimension of at least 1, but got True"),
        (lambda: Box(2, low=1.0), r"low < high everywhere, but got 1\.0 and 1\.0"),
        (lambda: Box(2, low=[0, 2]), r"low < high everywhere, but got \[0, 2\]"),
        (lambda: Box(2, low=[0, 0, 0]), "low of a box must be 1 or 2 numbers"),
        (lambda: Box(2, high=[[1, 1]]), "high of a box must be 1 or 2 numbers"),
        (lambda: Box(2, high=math.inf), "high of a box must be finite, but got inf; see Real"),
        (lambda: Box(2, low=math.nan), "low of a box must be finite, but got nan"),
        (lambda: L1Ball(-1), "at least 1, but got -1"),
        (lambda: L1Ball(2, radius=-1.0), r"positive, finite radius, but got -1\.0"),
        (lambda: Product([]), r"at least one space, but got \[\]"),
        (lambda: Product([3]), r"at least one space, but got \[3\]"),
        (lambda: Space.from_dict({"dim": 3}), r"Unknown space None; known are .*Sphere"),
        (lambda: Space.from_dict({"kind": "Torus"}), r"Unknown space 'Torus'.* Import its module"),
        (lambda: Space.from_dict({"kind": "Box", "dims": 2}), r"Box .*'dims'"),
        (lambda: Space.from_dict("Box"), r"described by a dict.*'Box'"),
    ],
)
def test_a_bad_argument_is_explained(make, message):
    with pytest.raises(DemixError, match=message):
        make()
