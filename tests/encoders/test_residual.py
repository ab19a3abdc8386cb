"""Residual layers in compiled code give the numbers of their definition, and all its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from demix import Encoder, Sphere
from demix._support.kernel import build
from demix.encoders import residual
from demix.encoders.bodies import mlp

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C compiler")


def body(width: int, layers: int, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(0)
    return mlp(3, (width,) * layers, 2, activation="silu", residual=True).to(dtype)


def plainly(made: nn.Sequential, x: Tensor) -> Tensor:
    """Apply the layers one by one."""
    for layer in made:
        x = layer(x)
    return x


def gradients(made: nn.Sequential, z: Tensor, x: Tensor) -> list[Tensor]:
    pull = torch.linspace(-1, 2, z.numel(), dtype=z.dtype).reshape(z.shape)
    return [z, *torch.autograd.grad(z, [x, *made.parameters()], pull)]


# One tile, several, and a part of one; a width that is no multiple of the strips of a product.
@pytest.mark.parametrize("rows", [32, 96, 250])
@pytest.mark.parametrize(("width", "layers"), [(16, 1), (64, 4), (112, 2)])
@pytest.mark.parametrize("threads", [1, 2])
def test_values_and_gradients_are_those_of_the_definition(
    rows: int, width: int, layers: int, threads: int
) -> None:
    made, x = body(width, layers), torch.randn(rows, 3, dtype=torch.float64, requires_grad=True)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert residual.serves(made[0](x), [made[1].linear.weight])
        found, expected = (gradients(made, z, x) for z in (made(x), plainly(made, x)))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_float32_is_as_near_to_float64_as_the_definition() -> None:
    x = 3 * torch.randn(300, 3, dtype=torch.float64)
    exact = gradients(made := body(64, 4), plainly(made, start := x.requires_grad_()), start)
    rounded, single = body(64, 4, torch.float32), x.detach().float().requires_grad_()
    for form in (rounded, lambda x: plainly(rounded, x)):
        for one, other in zip(gradients(rounded, form(single), single), exact, strict=True):
            assert (one - other).abs().max() < 3e-6 * (1 + other.abs().max())


def test_gradients_are_differences_of_values() -> None:
    torch.manual_seed(0)
    start = torch.randn(33, 16, dtype=torch.float64, requires_grad=True)
    given = [torch.randn(16, 16, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    given += [torch.randn(16, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(
        lambda h, *rest: residual.through_layers(h, list(rest[:2]), list(rest[2:])),
        (start, *given),
        fast_mode=True,
    )


def test_gradients_of_gradients_are_those_of_the_definition() -> None:
    made, x = body(16, 2), torch.randn(40, 3, dtype=torch.float64, requires_grad=True)
    seconds = []
    for z in (made(x), plainly(made, x)):
        (slope,) = torch.autograd.grad(z.square().sum(), x, create_graph=True)
        weights = [made[1].linear.weight, made[2].linear.bias]
        seconds.append(torch.autograd.grad(slope.square().sum(), [x, *weights]))
    for one, other in zip(*seconds, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_functions_that_torch_transforms_see_the_layers() -> None:
    made, x = body(16, 1), torch.randn(2, 40, 3, dtype=torch.float64)
    slopes = torch.func.vmap(torch.func.grad(lambda rows: made(rows).sum()))(x)
    assert slopes.shape == x.shape


@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_broken_numbers_do_not_vanish(broken: float) -> None:
    made, x = body(16, 2, torch.float32), torch.randn(40, 3)
    x[7, 1] = broken
    assert not made(x)[7].isfinite().all()
    assert made(x)[8].isfinite().all()


def test_large_numbers_neither_overflow_nor_vanish() -> None:
    made, x = body(16, 1, torch.float32), 1e6 * torch.randn(40, 3)
    found, expected = (
        gradients(made, z, s) for s in [x.requires_grad_()] for z in (made(s), plainly(made, s))
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_names_of_weights_are_those_of_the_layers() -> None:
    names = [name for name in Encoder(5, Sphere(3), hidden=(16, 16)).state_dict() if "body" in name]
    within = [f"body.{i}.linear.{part}" for i in (1, 2) for part in ("weight", "bias")]
    assert names == ["body.0.weight", "body.0.bias", *within, "body.3.weight", "body.3.bias"]


def test_a_frozen_layer_stays() -> None:
    made = body(16, 2)
    made[1].requires_grad_(False)
    made(torch.randn(40, 3, dtype=torch.float64)).sum().backward()
    assert made[1].linear.weight.grad is None
    assert made[2].linear.weight.grad is not None
