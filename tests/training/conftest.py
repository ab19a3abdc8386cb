"""Small processes and encoders that train in a second."""

from __future__ import annotations

import pytest

from demix import Encoder, InfoNCE, LeakyMixing, Process, Recipe, Sphere, Uniform, VonMisesFisher


@pytest.fixture(scope="session")
def circle() -> Process:
    """Angles, mixed in the plane; matched with the dot product."""
    space = Sphere(2)
    return Process(Uniform(space), VonMisesFisher(space, 10.0), LeakyMixing(2, seed=0, draws=100))


@pytest.fixture
def tiny(circle):
    """Arguments of `train` for a training of 20 small steps."""
    encoder = Encoder(2, circle.space, hidden=(16, 16), scale=3.0)
    return {
        "encoder": encoder,
        "sample": circle.sample,
        "objective": InfoNCE(),
        "recipe": Recipe(steps=20, batch=32),
    }
