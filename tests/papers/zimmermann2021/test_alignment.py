"""Alignment and uniformity: their definitions, and the limit of InfoNCE (Props. A and 3)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from demix import Box, Encoder, Laplace, Pairs, Sphere, VonMisesFisher, contrast
from demix.papers.zimmermann2021.alignment import PotentialLimit, alignment, uniformity
from dense_objectives import SIMILARITIES, assert_same, dense_similarity, lawful, uniform


def dense_alignment(q: Tensor, k: Tensor, similarity: Any) -> Tensor:
    return -dense_similarity(q, k, similarity).diagonal().mean()


def dense_uniformity(q: Tensor, k: Tensor, similarity: Any) -> Tensor:
    return dense_similarity(q, k, similarity).exp().mean(dim=1).log().mean()


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    similarity=st.sampled_from(SIMILARITIES),
)
@lawful
def test_both_equal_their_dense_definitions(
    seed: int, shape: tuple[int, int, int], similarity: Any
) -> None:
    rows, columns, width = shape
    q, k = uniform(seed, rows, width), uniform(seed + 1, columns, width)
    pairs = [(alignment, dense_alignment, k[[0] * rows]), (uniformity, dense_uniformity, k)]
    for streamed, dense, keys in pairs:
        inputs = (q.clone().requires_grad_(), keys.clone().requires_grad_())
        found, expected = streamed(*inputs, similarity), dense(*inputs, similarity)
        assert_same(found.detach(), expected.detach(), 1e-10)
        gradients = (torch.autograd.grad(loss, inputs) for loss in (found, expected))
        for gradient, exact in zip(*gradients, strict=True):
            assert_same(gradient, exact, 1e-10)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(similarity: Any, dtype: torch.dtype) -> None:
    q, k = uniform(0, 300, 3).to(dtype), uniform(1, 300, 3).to(dtype)
    wide = (q.double(), k.double())
    found = alignment(q, k, similarity=similarity), uniformity(q, k, similarity=similarity)
    exact = dense_alignment(*wide, similarity), dense_uniformity(*wide, similarity)
    for loss, expected in zip(found, exact, strict=True):
        assert loss.dtype == torch.float32
        assert_same(loss, expected, 1e-5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_contrast_is_alignment_plus_uniformity_plus_log_k(similarity: Any) -> None:
    q, k = uniform(0, 20, 3), uniform(1, 20, 3)
    parts = alignment(q, k, similarity=similarity) + uniformity(q, k, similarity=similarity)
    assert_same(contrast(q, k, similarity=similarity), parts + math.log(20), 1e-12)


def warp(z: Tensor) -> Tensor:
    """Some smooth representation, far from optimal."""
    mixed = z @ uniform(5, z.shape[1], 3, dtype=z.dtype)
    return 1.5 * torch.sin(2 * mixed)


@pytest.mark.parametrize(
    ("conditional", "similarity"),
    [
        (VonMisesFisher(Sphere(3), 5.0), "dot"),
        (Laplace(Box(2), 0.2), 1),
        (Laplace(Box(2), 0.2), 2),
    ],
    ids=["Prop. A", "Prop. 3, p = 1", "Prop. 3, p = 2"],
)
def test_contrast_minus_log_m_tends_to_alignment_plus_uniformity(
    conditional: Any, similarity: Any
) -> None:
    generator = torch.Generator().manual_seed(0)
    anchors = conditional.space.uniform(2048, generator=generator)
    q, k = warp(anchors), warp(conditional.sample(anchors, generator=generator))
    # Negatives are drawn from p(z), as Eqs. 1 and 6 want them.
    others = warp(conditional.space.uniform(30_000, generator=generator))
    limit = alignment(q, k, similarity=similarity) + uniformity(q, others, similarity=similarity)
    gaps = []
    for queries, negatives in [(4, 12), (8, 248), (32, 4064)]:
        losses = []
        for a, b in zip(q.split(queries), k.split(queries), strict=True):
            drawn = others[torch.randint(len(others), (negatives,), generator=generator)]
            losses.append(contrast(a, torch.cat([b, drawn]), similarity=similarity))
        log_m = math.log(queries + negatives - 1)
        gaps.append(abs(float(torch.stack(losses).mean() - log_m - limit)))
    assert gaps[0] > 3 * gaps[1] > 3 * gaps[2], gaps
    assert gaps[2] < 0.01


@pytest.mark.parametrize("similarity", ["dot", 1, 2, 3])
def test_a_potential_is_added_to_every_key(similarity: Any) -> None:
    torch.manual_seed(0)
    encoder, objective = Encoder(3, Box(3), hidden=(8, 8)), PotentialLimit(3, similarity=similarity)
    encoder.double().initialise()
    objective.double()
    for parameter in objective.parameters():  # else the potential is zero
        torch.nn.init.normal_(parameter)
    pairs = Pairs(*(uniform(seed, 12, 3) for seed in range(4)))
    z, z_tilde = encoder(pairs.x), encoder(pairs.x_tilde)
    near = objective.network(z_tilde.detach())[:, 0]
    far = dense_similarity(z, z, similarity) + objective.network(z.detach())[:, 0]
    expected = far.exp().mean(dim=1).log().mean() - near.mean()
    expected = expected + dense_alignment(z, z_tilde, similarity)
    found = objective(encoder, pairs)
    assert_same(found.detach(), expected.detach(), 1e-9)
    weights = [*encoder.parameters(), *objective.parameters()]
    gradients = (torch.autograd.grad(loss, weights) for loss in (found, expected))
    for gradient, exact in zip(*gradients, strict=True):
        assert_same(gradient, exact, 1e-9)
