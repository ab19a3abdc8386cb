"""Every space that must keep the laws."""

from __future__ import annotations

import pytest

from demix import Box, L1Ball, Product, Real, Space, Sphere

SPACES = [
    Sphere(2),
    Sphere(3, radius=0.5),
    Sphere(10, radius=2.5),
    Box(1),
    Box(3, low=-1.0, high=2.0),
    Box(2, low=[0.0, -5.0], high=[0.01, 5.0]),
    Box(4, low=100.0, high=[101.0, 102.0, 103.0, 100.5]),
    Real(1),
    Real(4),
    L1Ball(1),
    L1Ball(2, radius=3.0),
    L1Ball(5, radius=0.5),
    Product([Sphere(3), Box(2, low=-1.0)]),
    Product([L1Ball(2), Box(1, low=2.0, high=4.0)]),
    Product([Product([Sphere(2, radius=0.5), L1Ball(2)]), Box(1, low=-1.0, high=0.0)]),
    Product([Box(1), Product([Real(2), Product([Sphere(2)])])]),
]


@pytest.fixture(params=SPACES, ids=repr)
def space(request) -> Space:
    """Each space."""
    return request.param


@pytest.fixture(params=[space for space in SPACES if space.bounded], ids=repr)
def bounded(request) -> Space:
    """Each space that has a uniform distribution."""
    return request.param
