"""The streamed loss is the dense one: value, gradients, every option, every tile."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given

from demix import contrast
from demix.losses import streaming, tiles
from demix.losses.similarities import similarity_named
from dense_objectives import (
    SIMILARITIES,
    Case,
    assert_same,
    cases,
    dense_contrast,
    dense_similarity,
    lawful,
    uniform,
)

pytestmark = pytest.mark.usefixtures("engine")


def assert_equals_dense(case: Case, tolerance: float) -> None:
    value, gradients = case.value_and_gradients(contrast)
    wide_value, wide_gradients = case.to(torch.float64).value_and_gradients(dense_contrast)
    assert value.ndim == 0
    assert_same(value, wide_value, tolerance)
    for gradient, wide in zip(gradients, wide_gradients, strict=True):
        assert_same(gradient, wide, tolerance)


@given(case=cases())
@lawful
def test_value_and_gradients_equal_the_dense_definition(case: Case) -> None:
    assert_equals_dense(case, 1e-10)


@given(case=cases(coldest=0.5))
@lawful
def test_float32_stays_within_1e_5_of_float64(case: Case) -> None:
    narrow = case.to(torch.float32)
    scores = dense_similarity(case.q, case.k, case.options["similarity"])
    # A softmax is as exact as its similarities, whose rounding grows with their size.
    largest = float((scores / case.options["temperature"]).abs().max())
    value, _ = narrow.value_and_gradients(contrast)
    assert value.dtype == torch.float32
    assert_equals_dense(narrow, 1e-5 * max(1.0, largest))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("two_sided", [False, True])
def test_gradcheck(similarity: object, two_sided: bool) -> None:
    q, k = uniform(0, 4, 3).requires_grad_(), uniform(1, 6, 3).requires_grad_()
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    positives = torch.tensor([5, 0, 5, 2])

    def loss(q: torch.Tensor, k: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        return contrast(
            q,
            k,
            positives=positives,
            similarity=similarity,
            temperature=temperature,
            two_sided=two_sided,
        )

    assert torch.autograd.gradcheck(loss, (q, k, temperature))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("tile", [1, 7, 40, 10**6])
@pytest.mark.parametrize("skip", [False, True])
def test_both_log_sums_are_exact_whatever_the_tile(
    similarity: object, tile: int, skip: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_TILE", tile)
    q, k = uniform(0, 23, 3).requires_grad_(), uniform(1, 9, 3).requires_grad_()
    # Several tiles in a row hold nothing of the first key when their queries skip it.
    left_out = (torch.arange(23) // 6) if skip else None
    dense = dense_similarity(q, k, similarity)
    if left_out is not None:
        dense = dense.masked_fill(left_out[:, None] == torch.arange(9), -torch.inf)
    expected = (torch.logsumexp(dense, dim=1), torch.logsumexp(dense, dim=0))
    found = streaming.pairwise_logsumexp(
        q, k, similarity_named(similarity), skip=left_out, columns=True
    )
    weights = (uniform(2, 23), uniform(3, 9))
    gradients = []
    for rows, columns in (found, expected):
        total = rows @ weights[0] + columns @ weights[1]
        gradients.append(torch.autograd.grad(total, (q, k)))
    for streamed, whole in zip((*found, *gradients[0]), (*expected, *gradients[1]), strict=True):
        assert_same(streamed.detach(), whole.detach(), 1e-10)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("two_sided", [False, True])
def test_contrast_over_many_tiles_equals_the_dense_definition(
    similarity: object,
    two_sided: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiles, "_TILE", 64)
    options = {
        "positives": None,
        "similarity": similarity,
        "temperature": torch.tensor(0.3, dtype=torch.float64),
        "two_sided": two_sided,
    }
    assert_equals_dense(Case(uniform(0, 29, 3), uniform(1, 31, 3), options), 1e-10)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_identical_pairs_have_the_dense_gradient(similarity: object) -> None:
    z = uniform(0, 6, 2)
    z[1] = z[0]
    options = {"similarity": similarity, "temperature": 1.0, "two_sided": True}
    assert_equals_dense(Case(z, z.clone(), options), 1e-10)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_one_tensor_as_queries_and_keys_gets_both_gradients(similarity: object) -> None:
    z = uniform(0, 7, 3).requires_grad_()
    positives = torch.arange(7).roll(1)
    found, expected = (
        torch.autograd.grad(loss(z, z, positives=positives, similarity=similarity), z)[0]
        for loss in (contrast, dense_contrast)
    )
    assert_same(found, expected, 1e-10)


def test_only_what_asks_for_a_gradient_gets_one() -> None:
    q, k = uniform(0, 5, 2).requires_grad_(), uniform(1, 5, 2)
    contrast(q, k).backward()
    assert q.grad is not None
    assert k.grad is None
    assert not contrast(q.detach(), k).requires_grad
