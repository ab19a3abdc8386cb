"""Small data to fit."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def walk() -> np.ndarray:
    """A walk on a circle, seen through a nonlinear map, in float32."""
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 400))
    columns = [np.cos(angle), np.sin(angle), np.cos(2 * angle)]
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.fixture
def x(tmp_path, walk):
    """The walk as a file."""
    np.save(tmp_path / "x.npy", walk)
    return tmp_path / "x.npy"
