"""Cluster vectors: generator systems by construction or on purpose not, and diversity."""

from __future__ import annotations

import math

import pytest
import torch

from demix import DemixError, Laplace, Normal, Sphere, Uniform
from demix.papers import cluster_vectors
from demix.theory.ranks import affine_generator_rank, diversity_rank

SPHERE = Sphere(4)
LAWS = [Uniform(SPHERE), Normal(SPHERE, 1.0).at(), Laplace(SPHERE, 1.0).at()]
every_law = pytest.mark.parametrize("law", LAWS, ids=["uniform", "normal", "laplace"])


@every_law
def test_vectors_lie_on_the_sphere_and_follow_the_seed(law):
    first = cluster_vectors(law, 30, seed=1)
    assert first.shape == (30, 4)
    assert bool(SPHERE.contains(first).all())
    assert torch.equal(first, cluster_vectors(law, 30, seed=1))
    assert not torch.equal(first, cluster_vectors(law, 30, seed=2))


@every_law
@pytest.mark.parametrize("count", [2, 4, 5, 50])
def test_the_affine_hull_grows_to_the_space_and_flat_ones_stay_below(law, count):
    vectors = cluster_vectors(law, count, seed=0)
    assert affine_generator_rank(vectors) == min(count - 1, 4)
    vectors[:, 0] = 0.5
    assert affine_generator_rank(vectors) == min(count - 1, 3)


def test_the_affine_rank_ignores_shifts_and_rotations():
    vectors = cluster_vectors(LAWS[0], 3, seed=0).double()
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    assert affine_generator_rank(vectors @ turn + 7.0) == 2
    assert affine_generator_rank(torch.ones(5, 4)) == 0


@pytest.mark.parametrize(("d", "enough"), [(2, 5), (5, 20)])
def test_diversity_takes_as_many_vectors_as_there_are_functions(d, enough):
    vectors = cluster_vectors(Uniform(Sphere(d)), enough, seed=0)
    assert diversity_rank(vectors) == (enough, enough)
    assert diversity_rank(vectors[:-1]) == (enough - 1, enough)
    assert diversity_rank(vectors, sufficient=False) == (2 * d, 2 * d)


def test_only_the_sufficient_condition_ignores_the_axes():
    # Four corners of a square: squares of coordinates are constant along the axes, not turned.
    corners = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) / math.sqrt(2)
    turned = corners @ torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    assert diversity_rank(corners)[0] == diversity_rank(turned)[0]
    assert diversity_rank(corners, sufficient=False)[0] < 4
    assert diversity_rank(turned, sufficient=False)[0] == 4


@pytest.mark.parametrize("bad", [torch.zeros(3), torch.zeros(0, 2), torch.full((3, 2), torch.nan)])
def test_what_is_no_matrix_of_numbers_is_refused(bad):
    with pytest.raises(DemixError, match="finite matrix"):
        affine_generator_rank(bad)


def test_one_cluster_is_refused():
    with pytest.raises(DemixError, match="at least 2 clusters, but got 1"):
        cluster_vectors(LAWS[0], 1, seed=0)
