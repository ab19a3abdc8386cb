"""Bodies of encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from torch import Tensor, nn

from demix._support.errors import DemixError

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    # In place, which saves memory: going backward it needs no more than the sign.
    "leaky_relu": partial(nn.LeakyReLU, inplace=True),
}


class ResidualLayer(nn.Module):
    """``h + act(W h + b)``."""

    def __init__(self, width: int, activation: nn.Module) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.activation = activation

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width)`` to ``(N, width)``."""
        return h + self.activation(self.linear(h))


def mlp(
    dim_in: int,
    hidden: Sequence[int],
    dim_out: int,
    *,
    activation: str,
    residual: bool,
    batch_norm: bool = False,
) -> nn.Sequential:
    """Build an MLP; with ``residual``, every layer after a first linear one adds to its input."""
    if activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise DemixError(f"Unknown activation {activation!r}; known are {known}.")
    if not hidden or min(hidden) < 1:
        raise DemixError(f"A body needs at least one hidden layer, but got widths {hidden!r}.")
    act = _ACTIVATIONS[activation]
    if residual and batch_norm:
        raise DemixError("Layers are either residual or batch-normalised, but both were asked for.")
    if residual:
        if len(set(hidden)) > 1:
            raise DemixError(f"Residual layers need one width, but got {tuple(hidden)!r}.")
        layers: list[nn.Module] = [nn.Linear(dim_in, hidden[0])]
        layers += [ResidualLayer(width, act()) for width in hidden]
    else:
        layers = []
        for width_in, width_out in pairwise([dim_in, *hidden]):
            layers.append(nn.Linear(width_in, width_out))
            layers += [nn.BatchNorm1d(width_out), act()] if batch_norm else [act()]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], dim_out))
