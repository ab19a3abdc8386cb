"""Muon in float32."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_EPS = 1e-7


class Muon(torch.optim.Optimizer):
    """The rule of ``torch.optim.Muon`` (Jordan et al. 2024), in the gradient's own precision.

    Torch's orthogonalises in bfloat16, which processors without such units emulate some fifty
    times slower than float32, and one matrix at a time; here matrices of one shape go together.
    A convolution is the matrix that takes a patch to its outputs; torch's refuses it.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        options = {"weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, **options, "ns_steps": ns_steps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix by its orthogonalised momentum."""
        for group in self.param_groups:
            ready = [p for p in group["params"] if p.grad is not None]
            ready.sort(key=lambda p: tuple(p.shape))
            for _, same in groupby(ready, key=lambda p: tuple(p.shape)):
                self._step_together(list(same), group)

    def _step_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        momentum, gradients = group["momentum"], []
        for p in parameters:
            assert p.grad is not None
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(p)
            buffer = state["momentum_buffer"].lerp_(p.grad, 1 - momentum)
            gradient = p.grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            gradients.append(gradient.flatten(1))
        updates = orthogonalise(torch.stack(gradients), _COEFFICIENTS, group["ns_steps"], _EPS)
        height, width = updates.shape[1:]
        rate = group["lr"] * max(1, height / width) ** 0.5
        for p, update in zip(parameters, updates, strict=True):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(update.reshape(p.shape), alpha=-rate)


def orthogonalise(
    matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Push the singular values of each of ``(m, a, b)`` matrices towards one."""
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
