"""Random maps of the equivalences that runs may differ by."""

from __future__ import annotations

import numpy as np
from scipy.stats import ortho_group

from demix.theory.setting import Equivalence

SPHERE = Equivalence("orthogonal", sphere=True)
EQUIVALENCES = [
    SPHERE,
    Equivalence("orthogonal"),
    Equivalence("permutation"),
    Equivalence("affine"),
]
NAMES = ["sphere", "orthogonal", "permutation", "affine"]


def latents(rows: int = 300, dim: int = 3, seed: int = 0, *, sphere: bool = False) -> np.ndarray:
    """Return independent latents of different shapes, or points on a sphere."""
    z = np.random.default_rng(seed).normal(size=(rows, dim)) ** 3
    return z / np.linalg.norm(z, axis=1, keepdims=True) if sphere else z


def turn(dim: int, random: np.random.Generator) -> np.ndarray:
    """Return a rotation or reflection."""
    if dim == 1:
        return random.choice([-1.0, 1.0], size=(1, 1))
    return np.asarray(ortho_group.rvs(dim, random_state=random))


def element(equivalence: Equivalence, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return matrix and shift of a random map of an equivalence."""
    random = np.random.default_rng([seed, 3])
    shift = np.zeros(dim) if equivalence.sphere else random.normal(size=dim)
    if equivalence.name == "orthogonal":
        return random.uniform(0.5, 2) * turn(dim, random), shift
    if equivalence.name == "affine":
        sizes = np.geomspace(0.2, 2, dim) * random.uniform(0.8, 1.2, dim)
        return turn(dim, random) @ np.diag(sizes) @ turn(dim, random), shift
    scales = random.uniform(0.3, 3, dim) * random.choice([-1, 1], dim)
    return np.eye(dim)[random.permutation(dim)] * scales, shift
