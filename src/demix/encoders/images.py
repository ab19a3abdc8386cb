"""Bodies of encoders for images ``(N, C, H, W)``, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError

Shape = tuple[int, int, int]
"""Channels, height and width."""


class ChannelScaling(nn.Module):
    """Centre each channel and give it unit variance; part of the encoder, not trained.

    Whitening for images: a covariance of all pixels would be larger than the model.

    Parameters
    ----------
    shape : (C, H, W)
        Of an image.

    Examples
    --------
    >>> import torch
    >>> from demix.encoders.images import ChannelScaling
    >>> x = 5 + 3 * torch.randn(100, 2, 4, 4)
    >>> scaled = ChannelScaling((2, 4, 4)).fit(x)(x)
    >>> bool(scaled.mean().abs() < 1e-3), round(float(scaled.std()), 2)
    (True, 1.0)
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", torch.zeros(shape[0], 1, 1))
        self.register_buffer("deviation", torch.ones(shape[0], 1, 1))

    @property
    def samples(self) -> int:
        """How many images a fit should see."""
        return 1024

    @property
    def fit_bytes(self) -> int:
        """Roughly how many bytes a fit takes, for the samples."""
        return 20 * self.samples * math.prod(self.shape)

    def note(self, low: float, high: float) -> str:
        """Return a sentence on what is done to channels of these standard deviations."""
        return (
            f"Channels, with standard deviations from {low:.3g} to {high:.3g}, were centred and "
            "scaled."
        )

    @torch.no_grad()
    def fit(self, x: Tensor, *, scales: Tensor | None = None) -> ChannelScaling:
        """Take mean and deviation of each channel from ``x`` ``(N, ...)``; scales are found here.

        A channel that is constant goes to 0.
        """
        deviation, mean = torch.std_mean(
            x.reshape(-1, *self.shape).double(), dim=(0, 2, 3), correction=0
        )
        self.mean.copy_(mean[:, None, None])
        least = 1e-7 * mean.abs() + 1e-30
        infinite = torch.full_like(deviation, torch.inf)
        self.deviation.copy_(torch.where(deviation > least, deviation, infinite)[:, None, None])
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Take ``(N, ...)`` to scaled images ``(N, C, H, W)``, channels last in memory."""
        images = (x.reshape(-1, *self.shape).to(self.mean.dtype) - self.mean) / self.deviation
        return images.contiguous(memory_format=torch.channels_last)


class WhatAndWhere(nn.Module):
    """Means and maxima of each map over the image, beside a smaller map of where things are.

    Turned objects are told by what is seen, wherever it is: only with both are rotations learnt.
    """

    def __init__(self, width: int, height_in: int, width_in: int) -> None:
        super().__init__()
        self.where = nn.Conv2d(width, width // 3, 2, 2)
        self.activation = nn.ReLU()
        self.dim_out = 2 * width + (width // 3) * (height_in // 2) * (width_in // 2)

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width, H, W)`` to ``(N, dim_out)``."""
        where = self.activation(self.where(h)).flatten(1)
        return torch.cat([h.mean(dim=(2, 3)), h.amax(dim=(2, 3)), where], dim=1)


class BasicBlock(nn.Module):
    """The residual block of ResNet18 (He et al. 2016)."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.skip = nn.Sequential()
        if stride > 1 or width_in != width:
            self.skip = nn.Sequential(
                nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )
        self.activation = nn.ReLU()

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width_in, H, W)`` to ``(N, width, H / stride, W / stride)``."""
        out: Tensor = self.activation(self.main(h) + self.skip(h))
        return out


def kitti(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build the net of Klindt et al. (2021): four convolutions that halve the image, 256 units."""
    layers: list[nn.Module] = []
    width_in, (height, width) = shape[0], shape[1:]
    for channels in (32, 32, 64, 64):
        layers += [nn.Conv2d(width_in, channels, 4, 2, 1), nn.ReLU()]
        width_in, height, width = channels, height // 2, width // 2
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(width_in * height * width, 256),
        nn.ReLU(),
        nn.Linear(256, dim_out),
    )


def compact(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build a net that is narrow where images are large, without norms; for a CPU.

    Patches of 4x4 become 48 channels; two convolutions make 192 of them at half the size. What
    they see and where they see it (:class:`WhatAndWhere`) are read by 256 units.
    """
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
    return nn.Sequential(
        *_resnet18(shape), nn.Linear(512, 100), nn.LeakyReLU(), nn.Linear(100, dim_out)
    )


def resnet18_linear(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build ResNet18 and a linear map of its 512 features, as Reizinger et al. (2024)."""
    return nn.Sequential(*_resnet18(shape), nn.Linear(512, dim_out))


def _resnet18(shape: Shape) -> list[nn.Module]:
    """Return the layers of ResNet18 up to its 512 features."""
    layers: list[nn.Module] = [
        nn.Conv2d(shape[0], 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    width_in = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(width_in, width, stride), BasicBlock(width, width, 1)]
        width_in = width
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def perceptron(shape: Shape, dim_out: int) -> nn.Sequential:
    """Build three layers of 512 units over all pixels, normalised over the batch.

    The MLP of Reizinger et al. (2024), and a linear map of its features.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    width_in = shape[0] * shape[1] * shape[2]
    for _ in range(3):
        layers += [nn.Linear(width_in, 512, bias=False), nn.BatchNorm1d(512), nn.ReLU()]
        width_in = 512
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


def image_body(name: str, dim_in: int | Sequence[int], dim_out: int) -> tuple[Shape, nn.Sequential]:
    """Return the shape of images, and the body of that name for them."""
    if name not in BODIES:
        raise DemixError(f"Unknown body {name!r}; known are mlp, {', '.join(BODIES)}.")
    if isinstance(dim_in, int) or len(dim_in) != 3:
        raise DemixError(
            f"The body {name!r} takes images, so that dim_in must be their shape (C, H, W), but "
            f"got {dim_in!r}; give images, or take the body mlp."
        )
    channels, height, width = (int(size) for size in dim_in)
    build, least = BODIES[name]
    if min(height, width) < least or channels < 1:
        raise DemixError(
            f"The body {name!r} takes images of at least {least} x {least} pixels, but got "
            f"{channels} channels of {height} x {width}."
        )
    shape = (channels, height, width)
    return shape, channels_last(build(shape, dim_out))


def image_decoder(dim_in: int, shape: Sequence[int]) -> nn.Sequential:
    """Build the mirror of the body ``kitti``: from latents ``(N, n)`` to logits of pixels."""
    channels, height, width = (int(size) for size in shape)
    if height % 16 or width % 16:
        raise DemixError(
            f"A decoder makes images whose sides are multiples of 16, but got {height} x {width}."
        )
    low = (64, height // 16, width // 16)
    layers: list[nn.Module] = [
        nn.Linear(dim_in, 256),
        nn.ReLU(),
        nn.Linear(256, low[0] * low[1] * low[2]),
        nn.ReLU(),
        nn.Unflatten(1, low),
    ]
    for width_in, width_out in ((64, 64), (64, 32), (32, 32)):
        layers += [nn.ConvTranspose2d(width_in, width_out, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, channels, 4, 2, 1))


Body = TypeVar("Body", bound=nn.Module)


def channels_last(body: Body) -> Body:
    """Lay out the weights of convolutions as :class:`ChannelScaling` lays out images."""
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d):
            layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
    return body
