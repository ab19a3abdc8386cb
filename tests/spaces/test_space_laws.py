"""The laws that every space keeps, in float64."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import Tensor

from demix import Box, L1Ball, Product, Real, Space, Sphere

SEEDS = [0, 1, 2]


def free_points(space: Space, seed: int, spread: float = 3.0, size: int = 200) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn((size, space.dim), generator=generator, dtype=torch.float64)


def centre(space: Space) -> Tensor:
    return space.squash(torch.zeros(space.dim, dtype=torch.float64))


def boundary(space: Space, seed: int) -> Tensor:
    """Points of the space that lie on its edge, as seen from the centre."""
    return space.project(centre(space) + free_points(space, seed, spread=1e4))


def preimage(space: Space, z: Tensor) -> Tensor:
    """Solve ``squash(x) = z`` for points of the interior, by a formula of the test's own."""
    match space:
        case Box(low=low, high=high):
            return torch.logit((z - low) / (high - low))
        case L1Ball(radius=radius):
            return z / (radius - z.abs().sum(dim=-1, keepdim=True))
        case Product(parts=parts):
            pieces = zip(parts, z.split([part.dim for part in parts], dim=-1), strict=True)
            return torch.cat([preimage(part, piece) for part, piece in pieces], dim=-1)
        case _:
            return z


@pytest.mark.parametrize("seed", SEEDS)
def test_projection_lands_in_the_space_and_is_idempotent(space, seed):
    projected = space.project(free_points(space, seed))
    assert space.contains(projected, atol=1e-12).all()
    torch.testing.assert_close(space.project(projected), projected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_member_is_nearer_than_the_projection(space, seed):
    free = free_points(space, seed)
    projected = space.project(free)
    reached = (free - projected).norm(dim=1)
    nudges = free_points(space, seed + 10, spread=1e-2)
    near = space.project(projected + nudges)
    assert ((free - near).norm(dim=1) >= reached - 1e-12).all()
    far = space.project(centre(space) + free_points(space, seed + 20, spread=1.0))
    assert (torch.cdist(free, far) >= reached[:, None] - 1e-12).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_projection_on_a_convex_space_keeps_the_variational_inequality(space, seed):
    free = free_points(space, seed)
    projected = space.project(free)
    members = space.project(centre(space) + free_points(space, seed + 20, spread=1.0))
    # On a convex set <z - Pz, m - Pz> <= 0 for every member m says that Pz is the nearest point.
    residual = free - projected
    inner = residual @ members.T - (residual * projected).sum(dim=1, keepdim=True)
    assert not space.convex or (inner <= 1e-9).all()


def test_convex_says_whether_the_middle_of_two_members_is_one(space):
    one, two = (space.project(free_points(space, seed)) for seed in (0, 1))
    assert bool(space.contains((one + two) / 2, atol=1e-12).all()) == space.convex


def test_projection_keeps_members_in_place(space):
    inner = space.project(space.squash(free_points(space, 0)))
    torch.testing.assert_close(space.project(inner), inner, rtol=1e-13, atol=1e-13)


def test_the_centre_of_a_sphere_goes_to_the_first_pole():
    origin = torch.zeros(2, 3)
    torch.testing.assert_close(
        Sphere(3, radius=2.0).project(origin), torch.tensor([[2.0, 0, 0]] * 2)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_shape_and_type_are_kept(space, batch, dtype):
    z = torch.ones((*batch, space.dim), dtype=dtype)
    for moved in (space.project(z), space.squash(z)):
        assert moved.shape == z.shape
        assert moved.dtype == dtype
    assert space.contains(z).shape == batch
    assert space.contains(z).dtype == torch.bool


def test_contains_accepts_the_edge_and_rejects_what_lies_beyond(space):
    middle, edge = centre(space), boundary(space, 0)
    assert space.contains(edge, atol=1e-12).all()
    beyond = middle + 1.001 * (edge - middle)
    assert bool(space.contains(beyond).any()) == isinstance(space, Real)
    assert space.contains(beyond, atol=1e-2).all()


def test_contains_rejects_what_is_not_finite(space):
    for bad in (math.nan, math.inf, -math.inf):
        z = centre(space).clone()
        z[-1] = bad
        assert not space.contains(z)


def test_one_stray_part_takes_a_point_out_of_a_product():
    space = Product([Sphere(2), Box(2), L1Ball(2)])
    inside = torch.tensor([0.0, 1, 0.5, 0.5, 0.5, 0.5])
    assert space.contains(inside)
    for coordinate in range(space.dim):
        outside = inside.clone()
        outside[coordinate] += 2
        assert not space.contains(outside)


@pytest.mark.parametrize("seed", SEEDS)
def test_squash_lands_in_the_space(space, seed):
    squashed = space.squash(free_points(space, seed, spread=10.0**seed))
    assert space.contains(squashed, atol=1e-12).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_squash_is_differentiable(space, seed):
    raw = free_points(space, seed, spread=1.0, size=2).requires_grad_()
    assert torch.autograd.gradcheck(space.squash, raw)


@pytest.mark.parametrize("depth", [0.5, 1e-3])
def test_squash_reaches_the_whole_interior(space, depth):
    middle, edge = centre(space), boundary(space, 1)
    # For a sphere there is no inside: projecting takes its coordinates back to it.
    target = space.project(middle + (1 - depth) * (edge - middle))
    reached = space.squash(preimage(space, target))
    torch.testing.assert_close(reached, target, rtol=1e-9, atol=1e-9)


def test_a_space_survives_json(space):
    rebuilt = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert type(rebuilt) is type(space)
    assert rebuilt == space
    assert hash(rebuilt) == hash(space)
    assert repr(rebuilt) == repr(space)
    assert rebuilt.log_volume == space.log_volume
    free = free_points(space, 0)
    assert torch.equal(rebuilt.project(free), space.project(free))


def test_scale_spreads_over_the_dimensions(space):
    assert space.expand_scale(torch.ones(space.scale_size)).tolist() == [1.0] * space.dim


@pytest.mark.parametrize(
    ("space", "spread"),
    [
        (Sphere(3), [1, 1, 1]),
        (Real(2), [1, 1]),
        (L1Ball(2), [1, 1]),
        (Box(3), [1, 2, 3]),
        (Product([Sphere(2), Box(2), L1Ball(2)]), [1, 1, 2, 3, 4, 4]),
        (Product([Product([Box(2), Sphere(2)]), Real(2)]), [1, 2, 3, 3, 4, 4]),
    ],
)
def test_each_part_has_its_own_scale(space, spread):
    scale = torch.arange(1.0, space.scale_size + 1, requires_grad=True)
    expanded = space.expand_scale(scale)
    assert expanded.tolist() == spread
    (gradient,) = torch.autograd.grad(expanded.sum(), scale)
    assert gradient.sum() == space.dim


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (Box(2), Box(2, low=[0, 0], high=[1, 1])),
        (Box(2, low=0.0), Box(2, low=-0.0)),
        (Sphere(3), Sphere(3, radius=1)),
        (Product([Box(1)]), Product([Box(1).to_dict()])),
    ],
)
def test_equal_spaces_hash_alike(one, same):
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same}) == 1


def test_different_spaces_differ():
    different = [
        Sphere(3),
        Sphere(3, radius=2.0),
        Sphere(4),
        Box(3),
        Box(3, low=-1.0),
        Real(3),
        L1Ball(3),
        Product([Sphere(3)]),
        Product([Box(1), Box(2)]),
        Product([Box(2), Box(1)]),
    ]
    assert len(set(different)) == len(different)
    assert Sphere(3) != "Sphere(3)"


def test_latents_of_a_spherical_space_have_one_norm(bounded):
    norms = bounded.uniform(2000, generator=torch.Generator().manual_seed(0)).norm(dim=1)
    if bounded.spherical:
        torch.testing.assert_close(norms, norms[:1].expand(2000))
    elif not isinstance(bounded, Product):
        assert norms.std() > 1e-3 * norms.mean()


def test_coordinates_of_a_separable_space_are_independent(bounded):
    z = bounded.uniform(20_000, generator=torch.Generator().manual_seed(0)).double()
    z = (z - z.mean(dim=0)) / z.std(dim=0)
    # Of dependent coordinates, those of a ball and a sphere, squares go together or against.
    linear, square = (torch.corrcoef(x.T).reshape(bounded.dim, -1) for x in (z, z.square()))
    most = (torch.maximum(linear.abs(), square.abs()) - torch.eye(bounded.dim)).max()
    if bounded.separable or bounded.dim == 1:
        assert most < 0.04
    else:
        assert most > 0.04
