"""Processes on a sphere that train in a second."""

from __future__ import annotations

from typing import Any

from demix import (
    LeakyMixing,
    Process,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from demix.papers import ClusterProcess, cluster_vectors


def sphere_pairs(dim: int = 2, *, seed: int = 0, draws: int = 10) -> Process:
    """Pairs with von Mises-Fisher noise, matched with the dot product."""
    space, mixing = Sphere(dim), LeakyMixing(dim, seed=seed, draws=draws)
    return Process(Uniform(space), VonMisesFisher(space, 10.0), mixing)


def sphere_labels(
    dim: int = 2, classes: int = 20, *, seed: int = 0, draws: int = 10, **mixing: Any
) -> ClusterProcess:
    """Labels of clusters with the same noise."""
    space = Sphere(dim)
    vectors = cluster_vectors(Uniform(space), classes, seed=seed)
    mixed = LeakyMixing(dim, seed=seed, draws=draws, **mixing)
    return ClusterProcess(vectors, VonMisesFisher(space, 10.0), mixed)
