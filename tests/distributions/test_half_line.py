"""The distribution of ``|x|`` for a generalised normal, and its inverse."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from demix.distributions.generalized_normal import half_cdf, half_quantile

SHAPES = [0.7, 1.0, 1.5, 2.0, 3.0, 8.0]


@pytest.mark.parametrize("p", [0.4, *SHAPES])
def test_distribution_function_is_that_of_the_half_generalised_normal(p):
    t = torch.linspace(0, 6, 500, dtype=torch.float64)
    exact = torch.from_numpy(stats.halfgennorm(p).cdf(t.numpy()))
    torch.testing.assert_close(half_cdf(t, p), exact, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("p", SHAPES)
def test_quantile_inverts_the_distribution_function(p):
    u = torch.linspace(0, 1 - 1e-9, 5001, dtype=torch.float64)
    t = half_quantile(u, p)
    torch.testing.assert_close(half_cdf(t, p), u, rtol=0, atol=2e-6)
    assert (t.diff() > 0).all()


@pytest.mark.parametrize("p", SHAPES)
def test_distribution_function_inverts_the_quantile(p):
    t = torch.linspace(0, 2.5 ** (2 / p), 1000, dtype=torch.float64)
    torch.testing.assert_close(half_quantile(half_cdf(t, p), p), t, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("p", SHAPES)
def test_the_tail_is_as_deep_as_float64(p):
    u = torch.tensor(1 - 2.0**-52, dtype=torch.float64)
    expected = stats.halfgennorm(p).isf(2.0**-52)
    assert float(half_quantile(u, p)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", SHAPES)
def test_type_is_kept_and_both_start_at_zero(p, dtype):
    zero = torch.zeros(3, dtype=dtype)
    for function in (half_cdf, half_quantile):
        assert function(zero, p).dtype == dtype
        assert function(zero, p).tolist() == [0, 0, 0]
    largest = torch.tensor(1 - torch.finfo(dtype).eps, dtype=dtype)
    assert math.isfinite(half_quantile(largest, p))
