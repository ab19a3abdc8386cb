"""Circles, boxes and spheres side by side are found each in its own part of a product."""

from __future__ import annotations

import numpy as np
import pytest

from demix import Box, ContrastiveDemixer, Product, Sphere, affine_r2

ROWS = 4000


def mixed(z: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Show factors through a net of one layer, in eight columns."""
    first, second = random.normal(size=(z.shape[1], 16)), random.normal(size=(16, 8))
    return np.tanh(1.5 * z @ first / z.shape[1] ** 0.5) @ second


def circle(random: np.random.Generator) -> np.ndarray:
    """Return a walk on a circle."""
    angle = np.cumsum(random.normal(0, 0.3, ROWS))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def position(random: np.random.Generator) -> np.ndarray:
    """Return a walk between two walls."""
    place = np.cumsum(random.normal(0, 0.15, ROWS)) % 4
    return np.minimum(place, 4 - place)[:, None] - 1


@pytest.mark.parametrize(
    ("second", "space"),
    [(circle, Product([Sphere(2), Sphere(2)])), (position, Product([Sphere(2), Box(1)]))],
    ids=["two angles", "an angle and a position"],
)
def test_each_factor_is_in_a_part_of_its_own(second, space):
    random = np.random.default_rng(7)
    factors = [circle(random), second(random)]
    x = mixed(np.concatenate(factors, axis=1), random)
    fitted = ContrastiveDemixer(space.dim, space=space, conditional="normal")
    pieces = np.split(fitted.fit(x).transform(x), [2], axis=1)
    scores = [
        [float(affine_r2(piece, factor, blocks="auto")) for piece in pieces] for factor in factors
    ]
    own = max(scores, key=lambda row: row[0])
    assert own[0] > 0.97
    assert own[1] < 0.1
    other = scores[1 - scores.index(own)]
    assert other[1] > 0.97
    assert other[0] < 0.1
