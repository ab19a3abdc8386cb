"""Whitening gives zero mean and unit covariance wherever there is variance."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from demix import DemixError
from demix.encoders.encoder import Whitening


def data(size: int, dim: int, rank: int | None = None, seed: int = 0) -> Tensor:
    """Correlated data with a mean, on a subspace of the given rank."""
    generator = torch.Generator().manual_seed(seed)
    rank = dim if rank is None else rank
    factors = torch.randn((size, rank), generator=generator, dtype=torch.float64)
    spread = torch.randn((rank, dim), generator=generator, dtype=torch.float64)
    return factors @ spread + torch.arange(1.0, dim + 1)


def covariance(x: Tensor) -> Tensor:
    return torch.cov(x.T, correction=0)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dim", [2, 5, 20])
def test_whitened_data_has_zero_mean_and_unit_covariance(dim, seed):
    x = data(2000, dim, seed=seed)
    white = Whitening(dim).double().fit(x)(x)
    torch.testing.assert_close(white.mean(dim=0), torch.zeros(dim).double(), rtol=0, atol=1e-9)
    torch.testing.assert_close(covariance(white), torch.eye(dim).double(), rtol=0, atol=1e-7)


def test_in_single_precision_it_is_close():
    x = data(2000, 5).float()
    white = Whitening(5).fit(x)(x)
    assert white.dtype == torch.float32
    torch.testing.assert_close(white.mean(dim=0), torch.zeros(5), rtol=0, atol=1e-4)
    torch.testing.assert_close(covariance(white), torch.eye(5), rtol=0, atol=1e-3)


@pytest.mark.parametrize("rank", [1, 3])
def test_directions_without_variance_go_to_zero(rank):
    x = data(2000, 5, rank=rank)
    whitening = Whitening(5).double().fit(x)
    sizes = torch.linalg.eigvalsh(covariance(whitening(x)))
    expected = torch.tensor([0.0] * (5 - rank) + [1.0] * rank).double()
    torch.testing.assert_close(sizes, expected, rtol=0, atol=1e-7)
    assert torch.linalg.matrix_rank(whitening.matrix, rtol=1e-9) == rank
    assert whitening.matrix.isfinite().all()


def test_a_constant_column_goes_to_zero():
    x = data(500, 3)
    x[:, 1] = 0.1
    white = Whitening(3).double().fit(x)(x)
    assert white[:, 1].abs().max() < 1e-6


@pytest.mark.parametrize("kept", [None, 2])
@pytest.mark.parametrize("scaled", [True, False])
def test_a_column_very_far_from_zero_hides_no_variance(kept, scaled):
    x = data(500, 3)
    far = x + torch.tensor([2.0**43, 0.0, -(2.0**43)]).double()  # 9e12
    scales = x.std(dim=0) if scaled else None
    near = Whitening(3, kept).fit(far - far.mean(dim=0), scales=scales)
    found = Whitening(3, kept).fit(far, scales=scales)
    torch.testing.assert_close(found.matrix, near.matrix, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found(far), near(x - x.mean(dim=0)), rtol=0, atol=0.01)


def test_constant_data_goes_to_zero():
    x = torch.full((1000, 3), 0.1, dtype=torch.float64)
    white = Whitening(3).double().fit(x)(x)
    assert white.abs().max() < 1e-6


def test_whitened_inputs_stay_near_their_axes():
    x = data(2000, 4) @ torch.diag(torch.tensor([1.0, 10.0, 100.0, 1000.0]).double())
    whitening = Whitening(4).double().fit(x)
    torch.testing.assert_close(whitening.matrix, whitening.matrix.T)
    assert torch.linalg.eigvalsh(whitening.matrix).min() > 0


def test_before_it_is_fitted_whitening_changes_nothing():
    x = data(10, 3)
    assert torch.equal(Whitening(3).double()(x), x)


def test_whitening_is_stored_but_not_trained():
    whitening = Whitening(3).fit(data(100, 3))
    assert set(whitening.state_dict()) == {"mean", "matrix"}
    assert list(whitening.parameters()) == []
    assert not whitening(data(5, 3).float()).requires_grad


@pytest.mark.parametrize(("dim", "kept"), [(12_000, 256), (100_000, 64)])
def test_wide_rows_are_whitened_in_little_memory(dim, kept):
    whitening = Whitening(dim, kept)
    assert whitening.fit_bytes < 1e9
    assert whitening.samples >= 4 * kept
    # Rows as wide as most are take as many samples as they did.
    assert Whitening(1024).samples == Whitening(2048, 256).samples == 8192


def test_numbers_that_cannot_be_centred_are_refused():
    x = data(100, 2)
    with pytest.raises(DemixError, match="divide the columns by their size"):
        Whitening(2).fit(x / 0.0)
