"""Colours of images ``(B, 3, H, W)`` in [0, 1], changed by a number ``(B,)`` for each image."""

from __future__ import annotations

import torch
from torch import Tensor

# How bright red, green and blue are to the eye (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)


def gray(x: Tensor) -> Tensor:
    """Return the luma ``(B, 1, H, W)``."""
    return (x * x.new_tensor(_LUMA).view(3, 1, 1)).sum(dim=1, keepdim=True)


def brightened(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply: 0 is black, 1 changes nothing."""
    return (x * _each(factor)).clamp(0, 1)


def contrasted(x: Tensor, factor: Tensor) -> Tensor:
    """Go from the mean luma of the image (0) through the image (1) and beyond."""
    return _between(gray(x).mean(dim=(1, 2, 3), keepdim=True), x, factor)


def saturated(x: Tensor, factor: Tensor) -> Tensor:
    """Go from the luma of each pixel (0) through its colour (1) and beyond."""
    return _between(gray(x), x, factor)


def turned_hue(x: Tensor, turns: Tensor) -> Tensor:
    r"""Turn the hue by a share of the colour circle; see Smith (1978), Color Gamut Transform Pairs.

    With value :math:`v`, chroma :math:`c` and hue :math:`h` in sixths of the circle, a channel is
    :math:`v - c \, \max(0, \min(k, 4 - k, 1))` where :math:`k = (o + h) \bmod 6` and ``o`` is 5, 3
    and 1 for red, green and blue.
    """
    red, green, blue = x.unbind(dim=1)
    value = x.amax(dim=1)
    chroma = value - x.amin(dim=1)
    some = torch.where(chroma > 0, chroma, 1)  # where there is no colour, any hue will do
    hue = torch.where(
        value == red,
        (green - blue) / some,
        torch.where(value == green, 2 + (blue - red) / some, 4 + (red - green) / some),
    )
    k = (hue + 6 * turns.view(-1, 1, 1)).unsqueeze(1) + x.new_tensor([5, 3, 1]).view(3, 1, 1)
    k = k % 6
    low = torch.minimum(k, 4 - k).clamp(0, 1)
    return (value.unsqueeze(1) - chroma.unsqueeze(1) * low).clamp(0, 1)


def _between(zero: Tensor, one: Tensor, factor: Tensor) -> Tensor:
    return torch.lerp(zero.expand_as(one), one, _each(factor)).clamp(0, 1)


def _each(factor: Tensor) -> Tensor:
    return factor.view(-1, 1, 1, 1)
