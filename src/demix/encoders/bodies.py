"""Bodies of encoders by name: the MLP, and those for images ``(N, C, H, W)``."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError, shortened
from demix.encoders.residual import serves, through_layers

Shape = tuple[int, int, int]
"""Channels, height and width."""

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "leaky_relu": partial(nn.LeakyReLU, inplace=True),  # in place: gradients need the sign only
}


class ResidualLayer(nn.Module):
    """``h + act(W h + b)``."""

    def __init__(self, width: int, activation: nn.Module) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.activation = activation

    def forward(self, h: Tensor) -> Tensor:
        """Map ``(N, width)`` to ``(N, width)``."""
        return h + self.activation(self.linear(h))


class ResidualMLP(nn.Sequential):
    """A linear layer, residual ones, and a linear one."""

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, dim_in)`` to ``(N, dim_out)``."""
        layers: list[Any] = list(self)[1:-1]
        h: Tensor = self[0](x)
        weights = [layer.linear.weight for layer in layers]
        if all(isinstance(layer.activation, nn.SiLU) for layer in layers) and serves(h, weights):
            h = through_layers(h, weights, [layer.linear.bias for layer in layers])
        else:
            for layer in layers:
                h = layer(h)
        result: Tensor = self[-1](h)
        return result


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
    if len(hidden) > 1000 or min(hidden, default=1) < 1:  # more would take minutes to build
        widths = shortened(str(tuple(hidden)), 60)
        raise DemixError(f"A body has up to 1000 hidden layers, but got widths {widths}.")
    if not hidden:
        return nn.Sequential(nn.Linear(dim_in, dim_out))
    act = _ACTIVATIONS[activation]
    if residual and batch_norm:
        raise DemixError("Layers are residual or batch-normalised, but got both; choose one.")
    if residual:
        if len(set(hidden)) > 1:
            raise DemixError(f"Residual layers need one width, but got {tuple(hidden)!r}.")
        within = [ResidualLayer(width, act()) for width in hidden]
        return ResidualMLP(nn.Linear(dim_in, hidden[0]), *within, nn.Linear(hidden[-1], dim_out))
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise([dim_in, *hidden]):
        layers.append(nn.Linear(width_in, width_out))
        layers += [nn.BatchNorm1d(width_out), act()] if batch_norm else [act()]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], dim_out))


class WhatAndWhere(nn.Module):
    """Means and maxima of each map over the image, and a smaller map of where things are."""

    # Rotations of objects show in what is seen, wherever it is: only with both are they learnt.

    def __init__(self, width: int, height_in: int, width_in: int) -> None:
        super().__init__()
        self.where = nn.Conv2d(width, width // 3, 2, 2)
        self.activation = nn.ReLU()
        self.dim_out = 2 * width + (width // 3) * (height_in // 2) * (width_in // 2)

    def forward(self, h: Tensor) -> Tensor:
        """Map ``(N, width, H, W)`` to ``(N, dim_out)``."""
        where = self.activation(self.where(h)).flatten(1)
        return torch.cat([h.mean(dim=(2, 3)), h.amax(dim=(2, 3)), where], dim=1)


class BasicBlock(nn.Module):
    """The residual block of ResNet18 (He et al. 2016)."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        first = nn.Conv2d(width_in, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        second = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.main = nn.Sequential(*first, nn.ReLU(), *second)
        self.skip = nn.Sequential()
        if stride > 1 or width_in != width:
            shortcut = nn.Conv2d(width_in, width, 1, stride, bias=False)
            self.skip = nn.Sequential(shortcut, nn.BatchNorm2d(width))
        self.activation = nn.ReLU()

    def forward(self, h: Tensor) -> Tensor:
        """Map ``(N, width_in, H, W)`` to ``(N, width, H / stride, W / stride)``."""
        return self.activation(self.main(h) + self.skip(h))


def kitti(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build the net of Klindt et al. (2021): four convolutions that halve the image, 256 units."""
    layers: list[nn.Module] = []
    width_in, (height, width) = shape[0], shape[1:]
    for channels in (32, 32, 64, 64):
        layers += [nn.Conv2d(width_in, channels, 4, 2, 1), nn.ReLU()]
        width_in, height, width = channels, height // 2, width // 2
    head = nn.Linear(width_in * height * width, 256), nn.ReLU(), nn.Linear(256, dim_out)
    return nn.Sequential(*layers, nn.Flatten(), *head)


def compact(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build a net that is narrow where images are large, without norms; for a CPU."""
    last = WhatAndWhere(192, shape[1] // 8, shape[2] // 8)
    return nn.Sequential(
        nn.Conv2d(shape[0], 48, 4, 4),
        nn.ReLU(),
        nn.Conv2d(48, 96, 4, 2, 1),
        nn.ReLU(),
        nn.Conv2d(96, 192, 3, 1, 1),
        nn.ReLU(),
        last,
        nn.Linear(last.dim_out, 256),
        nn.ReLU(),
        nn.Linear(256, dim_out),
    )


def resnet18(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build ResNet18, 100 LeakyReLU units and the latents, as Zimmermann et al. (2021)."""
    head = nn.Linear(512, 100), nn.LeakyReLU(), nn.Linear(100, dim_out)
    return nn.Sequential(*_resnet18(shape), *head)


def resnet18_linear(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build ResNet18 and a linear map of its 512 features, as Reizinger et al. (2024)."""
    return nn.Sequential(*_resnet18(shape), nn.Linear(512, dim_out))


def _resnet18(shape: Shape) -> list[nn.Module]:
    layers: list[nn.Module] = [nn.Conv2d(shape[0], 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)]
    layers += [nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    width_in = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(width_in, width, stride), BasicBlock(width, width, 1)]
        width_in = width
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def perceptron(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build three layers of 512 units over all pixels, normalised, as Reizinger et al. (2024)."""
    layers: list[nn.Module] = [nn.Flatten()]
    for width_in in (math.prod(shape), 512, 512):
        layers += [nn.Linear(width_in, 512, bias=False), nn.BatchNorm1d(512), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(512, dim_out))


@torch.no_grad()
def initialise_images(body: nn.Module, generator: torch.Generator | None) -> None:
    """Draw Kaiming weights with zero biases."""
    last = [layer for layer in body.modules() if isinstance(layer, nn.Linear)][-1]
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            inputs = layer.weight[0].numel()
            gain = (1.0 if layer is last else 2.0) ** 0.5
            layer.weight.normal_(0, gain / inputs**0.5, generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.reset_parameters()


BODIES: dict[str, tuple[Callable[[Shape, int], nn.Sequential], int]] = {
    "kitti": (kitti, 16),
    "compact": (compact, 16),
    "resnet18": (resnet18, 32),
    "resnet18_linear": (resnet18_linear, 32),
    "perceptron": (perceptron, 1),
}
"""Every body for images, and the smallest side it takes."""


def image_body(name: str, dim_in: Sequence[int], dim_out: int) -> tuple[Shape, nn.Sequential]:
    """Return the shape of images, and the body of that name for them."""
    if name not in BODIES:
        raise DemixError(f"Unknown body {shortened(name)!r}; known are mlp, {', '.join(BODIES)}.")
    if len(dim_in) != 3:
        raise DemixError(
            f"The body {name!r} takes images, so that dim_in must be their shape (C, H, W), but "
            f"got {dim_in!r}; give images, or take the body mlp."
        )
    channels, height, width = dim_in
    build, least = BODIES[name]
    if min(height, width) < least or channels < 1:
        raise DemixError(
            f"The body {name!r} takes images of at least {least} x {least} pixels, but got "
            f"{channels} channels of {height} x {width}."
        )
    shape = (channels, height, width)
    return shape, channels_last(build(shape, dim_out))


Body = TypeVar("Body", bound=nn.Module)


def channels_last(body: Body) -> Body:
    """Lay out the weights of convolutions as :class:`ChannelScaling` lays out images."""
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d):
            layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
    return body
