"""Factors, and random maps up to which a score may identify them."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

# The same examples in every run: a law that fails must fail again.
lawful = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 5)
scales = st.floats(1e-3, 1e3)


def factors(seed: int, dim: int, samples: int = 400) -> np.ndarray:
    """Independent factors, uniform on [-1, 1]."""
    return np.random.default_rng(seed).uniform(-1, 1, size=(samples, dim))


def orthogonal(seed: int, dim: int) -> np.ndarray:
    """A rotation or reflection."""
    random = np.random.default_rng([seed, 1])
    if dim == 1:
        return random.choice([-1.0, 1.0], size=(1, 1))
    return np.asarray(ortho_group.rvs(dim, random_state=random))


def invertible(seed: int, dim: int) -> np.ndarray:
    """A matrix with singular values between 1/30 and 30."""
    random = np.random.default_rng([seed, 2])
    singular = np.exp(random.uniform(-3.4, 3.4, size=dim))
    return orthogonal(seed, dim) * singular @ orthogonal(seed + 1, dim)


def signed_permutation(seed: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """An order of the columns, and a sign for each."""
    random = np.random.default_rng([seed, 3])
    return random.permutation(dim), random.choice([-1.0, 1.0], size=dim)


def shift(seed: int, dim: int) -> np.ndarray:
    """A translation."""
    return np.random.default_rng([seed, 4]).normal(scale=10, size=dim)


def turn() -> np.ndarray:
    """A rotation of the plane by 45 degrees."""
    return np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
