"""Uniform samples and volumes, against closed forms and against points thrown into a box."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy import stats

from demix import Box, DemixError, L1Ball, Product, Real, Space, Sphere

SIZE = 20_000
LEAST_P = 1e-4
# How far a shell around a unit sphere reaches in and out.
SHELL = 0.2


def draw(space: Space, seed: int, size: int = SIZE) -> np.ndarray:
    return space.uniform(size, generator=torch.Generator().manual_seed(seed)).double().numpy()


def closed_forms(space: Space, z: np.ndarray) -> Iterator[tuple[str, np.ndarray, object]]:
    """Yield statistics of uniform samples with the distributions that they must have."""
    n = space.dim
    match space:
        case Box(low=low, high=high):
            for i in range(n):
                side = float(high[i] - low[i])
                yield f"coordinate {i}", z[:, i], stats.uniform(float(low[i]), side)
        case Sphere(radius=radius):
            law = stats.beta((n - 1) / 2, (n - 1) / 2, loc=-radius, scale=2 * radius)
            for i in range(n):
                yield f"coordinate {i}", z[:, i], law
            yield "diagonal", z.sum(axis=1) / math.sqrt(n), law
        case L1Ball(radius=radius):
            yield "radius", np.abs(z).sum(axis=1), stats.beta(n, 1, scale=radius)
            for i in range(n):
                size = stats.beta(1, n, scale=radius)
                yield f"size of coordinate {i}", np.abs(z[:, i]), size
                yield f"above, coordinate {i}", z[z[:, i] > 0, i], size
        case Product(parts=parts):
            cuts = np.cumsum([part.dim for part in parts])[:-1]
            for part, piece in zip(parts, np.split(z, cuts, axis=1), strict=True):
                yield from closed_forms(part, piece)


def bounding_box(space: Space) -> np.ndarray:
    """Lower and upper corner ``(2, n)`` of a box around the space, shells included."""
    match space:
        case Box(low=low, high=high):
            return np.stack([low.numpy(), high.numpy()])
        case Sphere(radius=radius):
            reach = np.full(space.dim, (1 + SHELL) * radius)
            return np.stack([-reach, reach])
        case L1Ball(radius=radius):
            reach = np.full(space.dim, radius)
            return np.stack([-reach, reach])
        case Product(parts=parts):
            return np.concatenate([bounding_box(part) for part in parts], axis=1)


def inside(space: Space, z: np.ndarray) -> tuple[np.ndarray, float]:
    """Tell which points lie in the space or its shell, and the shell's volume over its area."""
    match space:
        case Box():
            low, high = bounding_box(space)
            return ((z >= low) & (z <= high)).all(axis=1), 1.0
        case L1Ball(radius=radius):
            return np.abs(z).sum(axis=1) <= radius, 1.0
        case Sphere(radius=radius, dim=n):
            off = np.abs(np.linalg.norm(z, axis=1) / radius - 1)
            return off < SHELL, radius * ((1 + SHELL) ** n - (1 - SHELL) ** n) / n
        case Product(parts=parts):
            cuts = np.cumsum([part.dim for part in parts])[:-1]
            pieces = zip(parts, np.split(z, cuts, axis=1), strict=True)
            hits, thickness = zip(*(inside(part, piece) for part, piece in pieces), strict=True)
            return np.all(hits, axis=0), math.prod(thickness)


def thrown(space: Space, seed: int, throws: int = 400_000) -> tuple[np.ndarray, float]:
    """Return the hits among points thrown into the bounding box, and how many are expected."""
    low, high = bounding_box(space)
    z = np.random.default_rng(seed).uniform(low, high, size=(throws, space.dim))
    hits, thickness = inside(space, z)
    expected = throws * math.exp(space.log_volume) * thickness / np.prod(high - low)
    return z[hits], expected


@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_samples_lie_inside(bounded, seed):
    z = bounded.uniform(1000, generator=torch.Generator().manual_seed(seed))
    assert z.shape == (1000, bounded.dim)
    assert bounded.contains(z).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_samples_follow_the_closed_forms(bounded, seed):
    for name, values, law in closed_forms(bounded, draw(bounded, seed)):
        assert stats.kstest(values, law.cdf).pvalue > LEAST_P, name


def test_coordinates_of_uniform_samples_are_uncorrelated(bounded):
    correlation = np.atleast_2d(np.corrcoef(draw(bounded, 3).T))
    off_diagonal = correlation[~np.eye(bounded.dim, dtype=bool)]
    assert (np.abs(off_diagonal) < 5 / math.sqrt(SIZE)).all()


def test_uniform_samples_match_thrown_points_along_every_direction(bounded):
    hits, _ = thrown(bounded, seed=0)
    hits = bounded.project(torch.from_numpy(hits)).numpy()
    samples = draw(bounded, 4)
    sides = np.subtract(*bounding_box(bounded)[::-1])
    for direction in np.random.default_rng(1).normal(size=(4, bounded.dim)):
        seen = [points @ (direction / sides) for points in (hits[:SIZE], samples)]
        assert stats.ks_2samp(*seen).pvalue > LEAST_P


def test_volume_agrees_with_thrown_points(bounded):
    hits, expected = thrown(bounded, seed=2)
    assert expected > 500
    assert abs(len(hits) - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize(
    ("space", "volume"),
    [
        (Sphere(2), 2 * math.pi),
        (Sphere(3, radius=2.0), 16 * math.pi),
        (Sphere(4), 2 * math.pi**2),
        (Box(3, low=-1.0, high=1.0), 8.0),
        (L1Ball(1, radius=3.0), 6.0),
        (L1Ball(3), 8 / 6),
        (Product([Sphere(2), Box(2, high=3.0)]), 18 * math.pi),
    ],
)
def test_volume_in_closed_form(space, volume):
    assert space.bounded
    assert math.exp(space.log_volume) == pytest.approx(volume, rel=1e-12)


@pytest.mark.parametrize("space", [Real(2), Product([Sphere(2), Real(1)])])
def test_an_unbounded_space_has_no_uniform_distribution(space):
    assert not space.bounded
    assert space.log_volume == math.inf
    with pytest.raises(DemixError, match=r"no uniform distribution; choose another marginal"):
        space.uniform(3)


def test_the_generator_alone_decides(bounded):
    first, again, other = (draw(bounded, seed, size=50) for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()
    assert bounded.uniform(0).shape == (0, bounded.dim)
