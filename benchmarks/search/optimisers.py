"""Rules for the matrices, and which parameter learns at which rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from benchmarks.search.bodies import linears
from benchmarks.search.plan import Plan
from demix.encoders.encoder import Encoder
from demix.training.optimizers import Adam, Muon, Optimizer, orthogonalise

_QUINTIC = (3.4445, -4.7750, 2.0315)
# Amsel et al. (2025), The Polar Express: the best odd polynomials of degree five in this order.
_POLAR_EXPRESS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
)
_EPS = 1e-7


def _wide(function: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, int], Tensor]:
    """Give ``function`` matrices that are no taller than wide, of Frobenius norm one."""

    def apply(matrices: Tensor, steps: int) -> Tensor:
        tall = matrices.shape[1] > matrices.shape[2]
        x = matrices.mT if tall else matrices
        x = function(x / x.norm(dim=(1, 2), keepdim=True).clamp_min(_EPS), steps)
        return x.mT if tall else x

    return apply


@_wide
def _polar_express(x: Tensor, steps: int) -> Tensor:
    x = x / 1.01  # the polynomials must not see a singular value above one
    for a, b, c in _POLAR_EXPRESS[:steps]:
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


@_wide
def _cubic(x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):  # two products an iteration instead of three
        x = torch.baddbmm(x, x @ x.mT, x, beta=1.5, alpha=-0.5)
    return x


@_wide
def _exact(x: Tensor, steps: int) -> Tensor:
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    return u @ v


@_wide
def _normalised(x: Tensor, steps: int) -> Tensor:
    return x * x.shape[1] ** 0.5


@_wide
def _rows(x: Tensor, steps: int) -> Tensor:
    return x / x.norm(dim=2, keepdim=True).clamp_min(_EPS)


def _bfloat16(matrices: Tensor, steps: int) -> Tensor:
    return orthogonalise(matrices.bfloat16(), _QUINTIC, steps, _EPS).to(matrices)


def _quintic(matrices: Tensor, steps: int) -> Tensor:
    return orthogonalise(matrices, _QUINTIC, steps, _EPS)


SHAPES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "quintic": _quintic,
    "quintic in bfloat16": _bfloat16,
    "polar express": _polar_express,
    "cubic": _cubic,
    "exact": _exact,
    "norm only": _normalised,
    "rows": _rows,
}


class ShapedMuon(torch.optim.Optimizer):
    """Muon with another way to orthogonalise, or with a second moment for each row (NorMuon)."""

    def __init__(self, groups: Iterable[Any], plan: Plan, *, second_moment: bool) -> None:
        super().__init__(groups, {"lr": 0.0})
        self.plan, self.second_moment = plan.optimiser, second_moment

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every matrix."""
        for group in self.param_groups:
            ready = sorted(group["params"], key=lambda p: tuple(p.shape))
            for _, same in groupby(ready, key=lambda p: tuple(p.shape)):
                self._together(list(same), group["lr"])

    def _together(self, parameters: list[Tensor], lr: float) -> None:
        momentum, directions = self.plan.momentum, []
        for p in parameters:
            assert p.grad is not None
            buffer = self.state[p].setdefault("momentum", torch.zeros_like(p))
            buffer.lerp_(p.grad, 1 - momentum)
            directions.append(p.grad.lerp(buffer, momentum) if self.plan.nesterov else buffer)
        updates = SHAPES[self.plan.orthogonal](torch.stack(directions), self.plan.ns_steps)
        if self.second_moment:
            updates = self._even(parameters[0], updates)
        height, width = parameters[0].shape
        for p, update in zip(parameters, updates, strict=True):
            p.add_(update, alpha=-lr * max(1, height / width) ** 0.5)

    def _even(self, owner: Tensor, updates: Tensor) -> Tensor:
        """Divide each row by its running root mean square; the norm of the whole stays."""
        seen = self.state[owner]
        square = updates.square().mean(dim=2, keepdim=True)
        running = seen.setdefault("second", square.clone()).lerp_(square, 0.05)
        evened = updates * (running + 1e-12).rsqrt()
        norm = updates.norm(dim=(1, 2), keepdim=True)
        return evened * norm / evened.norm(dim=(1, 2), keepdim=True).clamp_min(_EPS)


class Lion(torch.optim.Optimizer):
    """The sign of an interpolated momentum (Chen et al., 2023)."""

    def __init__(self, groups: Iterable[Any], betas: tuple[float, float] = (0.9, 0.99)) -> None:
        super().__init__(groups, {"lr": 0.0})
        self.betas = betas

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every parameter."""
        now, later = self.betas
        for group in self.param_groups:
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                p.add_(p.grad.lerp(momentum, now).sign_(), alpha=-group["lr"])
                momentum.lerp_(p.grad, 1 - later)


def build_optimisers(encoder: Encoder, plan: Plan) -> list[torch.optim.Optimizer | Optimizer]:
    """Return the rule for the matrices and Adam for the rest."""
    rule, recipe = plan.optimiser, plan.recipe
    layers = linears(encoder)
    first, last = layers[0].weight, layers[-1].weight
    ends = {id(first), id(last)}
    inner = [p for p in encoder.parameters() if p.ndim == 2 and id(p) not in ends]
    vectors = [p for p in encoder.body.parameters() if p.ndim != 2]
    rate = recipe.matrix_rate
    matrices = [{"params": inner, "lr": rate}]
    rest = [
        {"params": vectors, "lr": recipe.rate * rule.biases},
        {"params": [encoder.log_scale], "lr": recipe.rate * rule.size},
    ]
    for end, factor in ((first, rule.first), (last, rule.last)):
        if rule.ends_by_adam is None:
            matrices.append({"params": [end], "lr": rate * factor})
        else:
            rest.append({"params": [end], "lr": rule.ends_by_adam * factor})
    adam = Adam(rest, lr=recipe.rate, betas=rule.betas)
    return [_matrix_rule(matrices, plan), adam]


def _matrix_rule(groups: list[dict[str, Any]], plan: Plan) -> torch.optim.Optimizer | Optimizer:
    rule = plan.optimiser
    decay, momentum = rule.weight_decay, rule.momentum
    if rule.name == "muon" and rule.orthogonal == "quintic":
        return Muon(
            groups,
            weight_decay=decay,
            momentum=momentum,
            nesterov=rule.nesterov,
            ns_steps=rule.ns_steps,
        )
    if rule.name in ("muon", "normuon"):
        return ShapedMuon(groups, plan, second_moment=rule.name == "normuon")
    if rule.name == "sgd":
        return torch.optim.SGD(groups, momentum=momentum, nesterov=rule.nesterov)
    if rule.name == "lion":
        return Lion(groups)
    made: type[torch.optim.Optimizer] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "nadam": torch.optim.NAdam,
    }[rule.name]
    return made(groups, betas=rule.betas, weight_decay=decay)  # type: ignore[call-arg]
