"""Bodies that the package does not offer, and how they start."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.search.plan import Body, Plan
from demix.encoders.bodies import ResidualLayer
from demix.encoders.encoder import Encoder


class SquaredReLU(nn.Module):
    """``max(h, 0)^2``."""

    def forward(self, h: Tensor) -> Tensor:
        """Apply it to each unit."""
        return functional.relu(h).square()


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "gelu (tanh)": partial(nn.GELU, approximate="tanh"),
    "leaky_relu": nn.LeakyReLU,
    "leaky_relu 0.2": partial(nn.LeakyReLU, 0.2),
    "relu": nn.ReLU,
    "squared relu": SquaredReLU,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
    "hardswish": nn.Hardswish,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
}
_OFFERED = ("silu", "gelu", "leaky_relu")

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
    "batch": nn.BatchNorm1d,
}


class NormalisedLayer(nn.Module):
    """``h + act(W norm(h) + b)``, or the norm of the sum."""

    def __init__(self, width: int, activation: nn.Module, norm: nn.Module, *, before: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.activation, self.norm, self.before = activation, norm, before

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width)`` to ``(N, width)``."""
        if self.before:
            return h + self.activation(self.linear(self.norm(h)))
        normalised: Tensor = self.norm(h + self.activation(self.linear(h)))
        return normalised


class Block(nn.Module):
    """``h + V act(W h + b) + c``, the activation gated by a third matrix if ``gated``."""

    def __init__(self, width: int, inner: int, activation: nn.Module, *, gated: bool) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.gate = nn.Linear(width, inner) if gated else None
        self.down = nn.Linear(inner, width)
        self.activation = activation

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width)`` to ``(N, width)``."""
        up: Tensor = self.activation(self.up(h))
        if self.gate is not None:
            up = up * self.gate(h)
        return h + self.down(up)


class InputSkip(nn.Module):
    """A body plus a linear map of its input, which starts at zero."""

    def __init__(self, body: nn.Module, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.body = body
        # Not a Linear: the encoder's initialisation must still find the body's ends.
        self.skip = nn.Parameter(torch.zeros(dim_out, dim_in))

    def forward(self, x: Tensor) -> Tensor:
        """Take ``(N, dim_in)`` to ``(N, dim_out)``."""
        bent: Tensor = self.body(x)
        return bent + x @ self.skip.T


def build_encoder(plan: Plan) -> Encoder:
    """Build the package's encoder, with a body of our own where it offers none."""
    body = plan.body
    offered = body.activation in _OFFERED and body.kind in ("residual", "plain")
    encoder = Encoder(
        plan.dim,
        plan.space,
        hidden=body.hidden,
        activation=body.activation if offered else "silu",
        residual=body.kind != "plain",
        scale=plan.size,
    )
    if not offered or body.norm != "none":
        encoder.body = _own_body(body, plan.dim, plan.space.dim)
    if body.input_skip:
        encoder.body = InputSkip(encoder.body, plan.dim, plan.space.dim)  # type: ignore[assignment]
    return encoder


def _own_body(body: Body, dim_in: int, dim_out: int) -> nn.Sequential:
    act = ACTIVATIONS[body.activation]
    width = body.hidden[0]
    layers: list[nn.Module] = []
    if body.kind == "plain":
        for before, after in pairwise([dim_in, *body.hidden]):
            layers += [nn.Linear(before, after), act()]
        return nn.Sequential(*layers, nn.Linear(body.hidden[-1], dim_out))
    layers.append(nn.Linear(dim_in, width))
    place, _, norm = body.norm.partition(" ")
    for _ in body.hidden:
        if body.kind in ("block", "gated"):
            layers.append(Block(width, body.inner, act(), gated=body.kind == "gated"))
        elif place in ("pre", "post"):
            made = NORMS[norm](width)
            layers.append(NormalisedLayer(width, act(), made, before=place == "pre"))
        else:
            layers.append(ResidualLayer(width, act()))
    if place == "final":
        layers.append(NORMS[norm](width))
    return nn.Sequential(*layers, nn.Linear(width, dim_out))


def linears(encoder: Encoder) -> list[nn.Linear]:
    """Return the linear layers of the body, first to last."""
    return [layer for layer in encoder.body.modules() if isinstance(layer, nn.Linear)]


@torch.no_grad()
def start(encoder: Encoder, plan: Plan, generator: torch.Generator) -> None:
    """Draw the weights."""
    found = linears(encoder)
    inner, last = found[1:-1], found[-1]
    # Each of the skipped layers adds to what is there, so together they must add little.
    gain = math.sqrt(2 if plan.body.kind == "plain" else 2 / len(inner))
    for linear in found:
        own = gain if linear in inner else 1.0
        linear.weight.normal_(0, own / math.sqrt(linear.in_features), generator=generator)
        linear.bias.zero_()
    for block in encoder.body.modules():
        if isinstance(block, Block):
            # The small gain is meant for layers that add to the stream themselves;
            # here only `down` does.
            for layer in (block.up, block.gate):
                if layer is not None:
                    layer.weight *= math.sqrt(len(inner) / 2)
    factors = {"inner half": 0.5, "inner double": 2.0, "inner zero": 0.0}
    for layer in inner:
        layer.weight *= factors.get(plan.body.start, 1.0)
    last.weight *= {"last tenth": 0.1, "last double": 2.0}.get(plan.body.start, 1.0)
    if plan.body.start == "orthogonal":
        for layer in found:
            norm = layer.weight.norm()
            nn.init.orthogonal_(layer.weight, generator=generator)
            layer.weight *= norm / layer.weight.norm()
