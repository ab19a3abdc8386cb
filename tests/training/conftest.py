"""Small processes and encoders that train in a second."""

from __future__ import annotations

import math

import pytest

from demix import Encoder, InfoNCE, Process, Recipe
from small_processes import sphere_pairs


@pytest.fixture(scope="session")
def circle() -> Process:
    """Angles, mixed in the plane."""
    return sphere_pairs(draws=100)


@pytest.fixture
def all_checkpoints(monkeypatch):
    """Trainings of a second write a checkpoint at every evaluation, as those of an hour do."""
    monkeypatch.setattr("demix.training.checkpoints._SHARE", math.inf)


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
