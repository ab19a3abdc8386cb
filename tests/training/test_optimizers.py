"""Muon in float32 is torch's Muon with more digits, and Adam is torch's Adam."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from demix.training.optimizers import Adam, Muon, orthogonalise

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
every_shape = pytest.mark.parametrize("shape", [(24, 24), (48, 12), (12, 48)], ids=str)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def walk(optimizer_class, weights: list[Tensor], gradients: list[list[Tensor]], **settings):
    """Return the weights after one step for each list of gradients."""
    parameters = [nn.Parameter(weight.clone()) for weight in weights]
    optimizer = optimizer_class(parameters, **settings)
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = copy.deepcopy(gradient)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


@every_shape
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    "settings",
    [{"weight_decay": 0.0}, {"weight_decay": 0.5, "nesterov": False, "momentum": 0.8}],
    ids=["demix", "other"],
)
def test_steps_are_those_of_torch_up_to_bfloat16(shape, steps, settings):
    weight = random(*shape)
    gradients = [[random(*shape, seed=seed)] for seed in range(1, steps + 1)]
    [ours] = walk(Muon, [weight], gradients, lr=0.1, **settings)
    [torchs] = walk(torch.optim.Muon, [weight], gradients, lr=0.1, **settings)
    moved, expected = (ours - weight).flatten(), (torchs - weight).flatten()
    assert functional.cosine_similarity(moved, expected, dim=0) > 0.99
    torch.testing.assert_close(moved.norm(), expected.norm(), rtol=0.03, atol=0)


@every_shape
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_singular_values_come_near_one_and_singular_vectors_stay(shape, size):
    u, _, vh = torch.linalg.svd(random(*shape), full_matrices=False)
    values = torch.linspace(0.1, 1, min(shape))
    [found] = orthogonalise((size * (u * values) @ vh)[None], COEFFICIENTS, 5, 1e-7)
    rotated = u.T @ found @ vh.T
    assert rotated.diagonal().min() > 0.6
    assert rotated.diagonal().max() < 1.3
    torch.testing.assert_close(rotated, rotated.diagonal().diag(), atol=1e-4, rtol=0)


def test_tall_matrices_learn_faster_by_the_root_of_their_shape():
    weight, gradient = random(48, 12), random(48, 12, seed=1)
    [tall] = walk(Muon, [weight], [[gradient]], lr=0.1, weight_decay=0.0)
    [wide] = walk(Muon, [weight.T], [[gradient.T]], lr=0.1, weight_decay=0.0)
    torch.testing.assert_close(tall - weight, 2 * (wide.T - weight), atol=1e-5, rtol=1e-4)


def test_matrices_together_step_as_each_alone():
    shapes = [(8, 8), (16, 4), (8, 8), (4, 16), (16, 4), (8, 8)]
    weights = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
    gradients = [
        [random(*shape, seed=100 * step + i) for i, shape in enumerate(shapes)]
        for step in (1, 2, 3)
    ]
    together = walk(Muon, weights, gradients, lr=0.1, weight_decay=0.1)
    for i, weight in enumerate(weights):
        [alone] = walk(Muon, [weight], [[g[i]] for g in gradients], lr=0.1, weight_decay=0.1)
        torch.testing.assert_close(together[i], alone, atol=1e-5, rtol=1e-5)


def test_a_matrix_without_gradient_stays_where_it_is():
    weights = [random(4, 4), random(4, 4, seed=1)]
    stayed, moved = walk(Muon, weights, [[None, random(4, 4, seed=2)]], lr=0.1)
    assert torch.equal(stayed, weights[0])
    assert not torch.equal(moved, weights[1])


def test_a_gradient_of_zero_moves_nothing():
    weight = random(4, 4)
    [after] = walk(Muon, [weight], [[torch.zeros(4, 4)]], lr=0.1, weight_decay=0.0)
    assert torch.equal(after, weight)


def test_a_convolution_is_the_matrix_of_its_patches():
    weight, gradient = random(6, 2, 3, 3), random(6, 2, 3, 3, seed=1)
    [found] = walk(Muon, [weight], [[gradient]], lr=0.1)
    [flat] = walk(Muon, [weight.flatten(1)], [[gradient.flatten(1)]], lr=0.1)
    assert torch.equal(found.flatten(1), flat)


def test_adam_is_that_of_torch():
    weights = [random(6, 4), random(5, seed=1)]
    gradients = [[random(6, 4, seed=s), random(5, seed=10 + s)] for s in range(2, 7)]
    ours = walk(Adam, weights, gradients, lr=0.01)
    torchs = walk(torch.optim.Adam, weights, gradients, lr=0.01)
    for found, expected in zip(ours, torchs, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer_class", [Adam, Muon])
def test_what_is_remembered_continues_to_the_same_bits(optimizer_class):
    weight, gradients = random(6, 4), [[random(6, 4, seed=s)] for s in range(1, 5)]
    [whole] = walk(optimizer_class, [weight], gradients, lr=0.01)
    parameter = nn.Parameter(weight.clone())
    memories = {}
    for [gradient] in gradients:
        optimizer = optimizer_class([parameter], lr=0.01)
        optimizer.remember(memories)
        parameter.grad = gradient.clone()
        optimizer.step()
        memories = optimizer.memories()
    assert torch.equal(parameter, whole)
