"""Residual layers of SiLU units in compiled code, forward and backward in one pass over rows."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from demix._support.kernel import calls

_STEP, _WIDEST, _LEAST_ROWS = 16, 256, 32  # of widths, and of rows, that are worth a call


def serves(h: Tensor, weights: list[Tensor]) -> bool:
    """Tell whether compiled code takes ``(N, width)`` through layers and back."""
    rows, width = h.shape[0], h.shape[-1]
    fits = h.ndim == 2 and rows >= _LEAST_ROWS and width % _STEP == 0 and width <= _WIDEST
    learns = torch.is_grad_enabled() and h.requires_grad
    # Neither of torch's transformations of functions looks into compiled code.
    plain = not torch.is_autocast_enabled("cpu") and not torch._C._are_functorch_transforms_active()
    return fits and learns and plain and calls.serves(h, *weights)


def through_layers(h: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """Return ``h`` after ``h + silu(W h + b)`` for each layer, ``(N, width)``."""
    result: Tensor = _Residual.apply(h, *weights, *biases)
    return result


class _Residual(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, *parameters: Tensor) -> Tensor:
        layers, (rows, width) = len(parameters) // 2, h.shape
        weights, biases = torch.stack(parameters[:layers]), torch.stack(parameters[layers:])
        bent, later = h.new_empty(layers, rows, width), h.new_empty(layers - 1, rows, width)
        last = h.new_empty(h.shape)
        sizes = rows, width, layers, calls.threads_for(h.numel() * width * layers)
        calls.call("residual", h.dtype, *sizes, weights.mT, biases, h, bent, later, last)
        ctx.sizes = sizes
        ctx.save_for_backward(weights, bent, later, h, *parameters)
        return last

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        weights, bent, later, h, *parameters = ctx.saved_tensors
        _, width, layers, threads = ctx.sizes
        if torch.is_grad_enabled():  # a gradient of the gradient is asked for
            out = h
            for weight, bias in zip(parameters[:layers], parameters[layers:], strict=True):
                out = out + functional.silu(functional.linear(out, weight, bias))
            return torch.autograd.grad(out, [h, *parameters], grad, create_graph=True)
        to_h = h.new_empty(h.shape)
        to_weights = h.new_zeros(threads, layers, width, width)
        to_biases = h.new_zeros(threads, layers, width)
        found = to_h, to_weights, to_biases
        calls.call("residual_gradient", h.dtype, *ctx.sizes, weights, h, bent, later, grad, *found)
        return to_h, *to_weights.sum(dim=0), *to_biases.sum(dim=0)
