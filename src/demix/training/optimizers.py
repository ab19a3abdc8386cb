"""Adam and Muon, which step many parameters at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_EPS = 1e-7


class Optimizer(ABC):
    """Parameters in groups with a rate each, and what is remembered of each parameter.

    Torch's own base imports the whole of torch's compiler, which takes longer than a small fit.

    Parameters
    ----------
    parameters : iterable of Parameter, or of dict
        What is trained, or groups of it with ``params`` and perhaps ``lr``.
    lr : float
        The rate of groups that name none.
    """

    def __init__(self, parameters: Iterable[Any], lr: float) -> None:
        given = list(parameters)
        grouped = bool(given) and isinstance(given[0], dict)
        groups: list[dict[str, Any]] = given if grouped else [{"params": given}]
        self.param_groups = [{"lr": lr, **some, "params": list(some["params"])} for some in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @abstractmethod
    def fresh(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return what is remembered of a parameter before its first step."""

    @abstractmethod
    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """Change those parameters of a group that have a gradient."""

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, in their order."""
        return [parameter for group in self.param_groups for parameter in group["params"]]

    @torch.no_grad()
    def step(self) -> None:
        """Take one step with the gradients that are there."""
        for group in self.param_groups:
            ready = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in ready:
                if parameter not in self.state:
                    self.state[parameter] = self.fresh(parameter)
            self.update(group, ready)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def memories(self) -> dict[int, dict[str, Tensor]]:
        """Return what is remembered, by the number of the parameter."""
        numbered = enumerate(self.parameters)
        return {i: self.state[p] for i, p in numbered if p in self.state}

    def remember(self, memories: Mapping[int, dict[str, Tensor]]) -> None:
        """Take over what :meth:`memories` returned."""
        parameters = self.parameters
        self.state = {parameters[i]: dict(memory) for i, memory in memories.items()}


class Adam(Optimizer):
    """The rule of Kingma and Ba (2015), in torch's fused form."""

    def __init__(
        self, parameters: Iterable[Any], lr: float, *, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        super().__init__(parameters, lr)
        self.betas = betas

    def fresh(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return moments of zero, and no step."""
        moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        return {"step": torch.zeros((), device=parameter.device), **moments}

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """Move every number by about the rate."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        memories = [self.state[parameter] for parameter in parameters]
        means = [memory["exp_avg"] for memory in memories]
        squares = [memory["exp_avg_sq"] for memory in memories]
        steps = [memory["step"] for memory in memories]
        rule: dict[str, Any] = {"lr": group["lr"], "beta1": self.betas[0], "beta2": self.betas[1]}
        rule |= {"eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
        adam(parameters, gradients, means, squares, [], steps, fused=True, **rule)


class Muon(Optimizer):
    """The rule of ``torch.optim.Muon`` (Jordan et al. 2024), in the gradient's own precision.

    Torch's orthogonalises in bfloat16, which processors without such units emulate some fifty
    times slower than float32, and one matrix at a time; here matrices of one shape go together.
    A convolution is the matrix that takes a patch to its outputs; torch's refuses it.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__(parameters, lr)
        self.weight_decay, self.momentum = weight_decay, momentum
        self.nesterov, self.ns_steps = nesterov, ns_steps

    def fresh(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return a momentum of zero."""
        return {"momentum_buffer": torch.zeros_like(parameter)}

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """Update every matrix by its orthogonalised momentum."""
        by_shape = sorted(parameters, key=lambda p: tuple(p.shape))
        for _, same in groupby(by_shape, key=lambda p: tuple(p.shape)):
            self._update_together(list(same), group["lr"])

    def _update_together(self, parameters: list[Tensor], lr: float) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        buffers = [self.state[p]["momentum_buffer"] for p in parameters]
        torch._foreach_lerp_(buffers, gradients, 1 - self.momentum)
        if self.nesterov:
            buffers = list(torch._foreach_lerp(gradients, buffers, self.momentum))
        matrices = torch.stack(buffers).flatten(2)
        updates = orthogonalise(matrices, _COEFFICIENTS, self.ns_steps, _EPS)
        height, width = updates.shape[1:]
        shaped = updates.reshape(len(parameters), *parameters[0].shape)
        if self.weight_decay:
            torch._foreach_mul_(parameters, 1 - lr * self.weight_decay)
        torch._foreach_add_(parameters, shaped.unbind(), alpha=-lr * max(1, height / width) ** 0.5)


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
