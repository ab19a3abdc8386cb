"""The matrices of the paper's mixing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from demix import LeakyMixing
from demix.processes.process import _best_matrices

every_size = pytest.mark.parametrize(
    ("dim", "layers", "draws", "seed"), [(2, 3, 100, 0), (5, 3, 500, 1), (10, 4, 500, 2)]
)


def candidates(dim: int, draws: int, seed: int) -> np.ndarray:
    """Draw the candidates again and scale their columns one by one."""
    matrices = np.random.default_rng(seed).uniform(-1, 1, size=(draws, dim, dim))
    for matrix in matrices:
        for column in range(dim):
            matrix[:, column] /= np.sqrt((matrix[:, column] ** 2).sum())
    return matrices


def condition(matrix: np.ndarray) -> float:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return sizes[0] / sizes[-1]


@every_size
def test_the_best_conditioned_draws_are_kept(dim, layers, draws, seed):
    kept = sorted(
        condition(w.numpy())
        for w in LeakyMixing(dim, seed=seed, layers=layers, draws=draws).matrices
    )
    best = sorted(condition(matrix) for matrix in candidates(dim, draws, seed))[:layers]
    np.testing.assert_allclose(kept, best, rtol=1e-9)


@every_size
def test_columns_have_unit_norm(dim, layers, draws, seed):
    mixing = LeakyMixing(dim, seed=seed, layers=layers, draws=draws)
    assert len(mixing.matrices) == layers
    for weight in mixing.matrices:
        assert weight.shape == (dim, dim)
        assert weight.dtype == torch.float64
        torch.testing.assert_close(weight.norm(dim=0), torch.ones(dim, dtype=torch.float64))


def test_the_order_of_the_layers_does_not_follow_their_condition():
    first_is_best = [
        condition(LeakyMixing(3, seed=seed, draws=50).matrices[0].numpy())
        <= min(condition(w.numpy()) for w in LeakyMixing(3, seed=seed, draws=50).matrices)
        for seed in range(40)
    ]
    assert 3 <= sum(first_is_best) <= 25


def test_the_units_between_the_layers_are_leaky():
    mixing = LeakyMixing(3, seed=0, draws=50)
    z = np.random.default_rng(0).normal(size=(20, 3))
    expected = z
    for i, weight in enumerate(mixing.matrices):
        expected = expected @ weight.numpy().T
        if i < 2:
            expected = np.maximum(expected, 0.2 * expected)
    np.testing.assert_allclose(mixing(torch.from_numpy(z)), expected, rtol=1e-12)


def test_the_cache_does_not_hold_the_rejected_draws():
    assert all(matrix.base is None for matrix in _best_matrices(10, 0, 3, 100))
