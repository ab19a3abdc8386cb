"""prototypes_r2 is 1 for affine images of the cluster vectors, and holds whole clusters out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from demix import DemixError
from demix.papers.reizinger2024.prototypes import prototypes_r2
from score_maps import dimensions, factors, invertible, lawful, seeds, shift


@given(seed=seeds, dim=dimensions)
@lawful
def test_affine_maps_of_the_rows_change_nothing(seed, dim):
    vectors = factors(seed, dim, samples=30)
    noisy = vectors + 0.1 * factors(seed + 1, dim, samples=30)
    score = prototypes_r2(noisy, vectors)
    moved = noisy @ invertible(seed, dim) + shift(seed, dim)
    assert prototypes_r2(moved, vectors) == pytest.approx(score, abs=1e-6)
    assert prototypes_r2(vectors @ invertible(seed, dim), vectors) == pytest.approx(1)


def test_rows_that_only_memorise_their_cluster_score_nothing():
    """A split over rows would give 1 here: every cluster is then on both sides."""
    vectors = factors(0, 3, samples=20)
    clusters = np.arange(200) % 20
    rows = np.random.default_rng(1).normal(size=(20, 19))[clusters]  # any target fits them all
    rows = rows[:, :15]
    assert prototypes_r2(rows, vectors, clusters) < 0.1
    assert np.linalg.matrix_rank(rows) == 15


def test_rows_of_one_cluster_that_coincide_score_as_one_row_would():
    vectors = factors(0, 3, samples=20)
    noisy = vectors + 0.2 * factors(1, 3, samples=20)
    clusters = np.arange(60) % 20
    assert prototypes_r2(noisy[clusters], vectors, clusters) == pytest.approx(
        prototypes_r2(noisy, vectors)
    )


def test_each_vector_is_predicted_from_other_clusters():
    """Against leave-one-out written out."""
    vectors = factors(0, 2, samples=8)
    rows = vectors + 0.3 * factors(1, 2, samples=8)
    design = np.column_stack([rows, np.ones(8)])
    predicted = np.empty_like(vectors)
    for i in range(8):
        others = np.arange(8) != i
        predicted[i] = design[i] @ np.linalg.lstsq(design[others], vectors[others])[0]
    unexplained = np.square(vectors - predicted).sum(0) / np.square(vectors - vectors.mean(0)).sum(
        0
    )
    assert prototypes_r2(rows, vectors) == pytest.approx(float(np.mean(1 - unexplained)))


@pytest.mark.parametrize("dim", [1, 5, 9, 20])
def test_two_clusters_more_than_columns_are_enough(dim):
    vectors = factors(0, dim, samples=dim + 2)
    assert prototypes_r2(2 * vectors + 1, vectors) == pytest.approx(1)


def test_the_baseline_is_chance():
    vectors = factors(0, 3, samples=200)
    assert prototypes_r2(vectors, vectors).baseline < 0.05


@pytest.mark.parametrize(
    ("rows", "vectors", "clusters", "words"),
    [
        (np.eye(4), np.eye(4), None, "takes at least 6 clusters, but there are 4"),
        (factors(0, 2), factors(0, 2) * [1, 0], None, "vary in every column, but column 1"),
        (factors(0, 2), factors(0, 2)[:5], None, "needs a cluster in 0..4"),
        (factors(0, 2), factors(0, 2), np.arange(3), "400 whole numbers, one per prototype"),
        (factors(0, 2), factors(0, 2), np.zeros(400), "whole numbers.*float64"),
        (np.empty((0, 2)), factors(0, 2), None, "0 prototypes needs a cluster"),
        (factors(0, 2) * np.nan, factors(0, 2), None, "prototypes must be finite"),
    ],
)
def test_what_cannot_be_scored_is_refused(rows, vectors, clusters, words):
    with pytest.raises(DemixError, match=words):
        prototypes_r2(rows, vectors, clusters)
