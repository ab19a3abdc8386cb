"""Small data with known latents for tests of the estimators."""

from __future__ import annotations

import numpy as np
import torch

from demix import LeakyMixing, Recipe, affine_r2

# Narrow and short: enough for data this small.
QUICK = {"encoder": {"hidden": (32, 32)}, "recipe": Recipe(steps=100, batch=256)}
TINY = {"encoder": {"hidden": (8, 8)}, "recipe": Recipe(steps=10, batch=32)}

_MIXING = LeakyMixing(3, seed=1, draws=100)


def mixed(z: np.ndarray) -> np.ndarray:
    """Show latents ``(N, 3)`` through a nonlinear map that can be inverted."""
    with torch.no_grad():
        return _MIXING(torch.from_numpy(z).float()).numpy()


def sphere_walk(rows: int, seed: int = 0, step: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Return a random walk on the sphere and how it is observed."""
    random = np.random.default_rng(seed)
    z = np.empty((rows, 3))
    place = np.array([1.0, 0.0, 0.0])
    for row in range(rows):
        place = place + step * random.normal(size=3)
        place /= np.linalg.norm(place)
        z[row] = place
    return z, mixed(z)


def sphere_points(rows: int, seed: int = 0) -> np.ndarray:
    """Return points on the sphere."""
    z = np.random.default_rng(seed).normal(size=(rows, 3))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def unexplained(latents: np.ndarray, x: np.ndarray, z: np.ndarray) -> float:
    """Return the held-out variance of ``z`` that latents miss, relative to what ``x`` misses."""
    return (1 - float(affine_r2(latents, z))) / (1 - float(affine_r2(x, z)))
