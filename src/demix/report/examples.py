"""Images along each latent: what changes while one latent grows and the others stay similar."""

import math
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix._support.errors import DemixError
from demix.report.blocks import Example, Gallery
from demix.report.records import matrix_of, names_of, numbers_of
from demix.report.style import number

MOST_STRIPS = 8
IN_A_STRIP = 7
# The lowest and the highest rows are often outliers, so a strip ends just before them.
_LOWEST = 0.02
# Longest side of the images in pixels: the first at which all of them fit into the bytes below.
_SIDES = (128, 96, 64, 48, 32)
_BYTES = 270_000


def nearest_examples(
    images: ArrayLike, latents: ArrayLike, names: Sequence[str] | None = None
) -> Gallery:
    """Return strips of images from low to high along each latent.

    A strip visits quantiles of its latent. Of the images at a quantile (2 percent of all to either
    side) it shows the one whose other latents are nearest to their medians, so that little else
    changes along a strip.

    Images ``(M, C, H, W)`` hold brightness from 0 to 1 in one channel (grey) or three; the first
    8 columns of their latents ``(M, n)`` get a strip.
    """
    values = matrix_of(latents, "latents of the images")
    pixels = _checked(images, len(values))
    labels = names_of(names, values.shape[1], "latent")
    strips = range(min(values.shape[1], MOST_STRIPS))
    if len({labels[j] for j in strips}) < len(strips):
        raise DemixError("each latent needs a name of its own, but two share one; rename one")
    chosen = [_strip(values, j) for j in strips]
    pngs = _encoded(pixels, [row for strip in chosen for row in strip])
    rows = {}
    for j, strip in zip(strips, chosen, strict=True):
        values_shown = _written(values[strip, j])
        rows[labels[j]] = [
            Example(pngs[row], value, alt=f"Image {row}, where {labels[j]} is {value}.")
            for row, value in zip(strip, values_shown, strict=True)
        ]
    return Gallery(
        rows,
        "Images along each latent, from low to high; the number is its value. Of the images with "
        "similar values, the one is shown whose other latents are nearest to their medians.",
    )


def _checked(images: ArrayLike, count: int) -> NDArray[np.float32]:
    pixels: NDArray[np.float32] = numbers_of(images, "images", np.float32)
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3) or 0 in pixels.shape:
        raise DemixError(
            "images must have shape (M, C, H, W) with 1 or 3 channels, but have shape "
            f"{pixels.shape}; move the channels before height and width"
        )
    if len(pixels) != count:
        raise DemixError(
            f"there must be one row of latents per image, but there are {len(pixels)} images and "
            f"{count} rows; encode exactly the images that are shown"
        )
    # Written so that NaN, which is neither below nor above, is refused too.
    if not (pixels.min() >= 0 and pixels.max() <= 1):
        raise DemixError(
            f"images must hold brightness from 0 to 1, but reach from {pixels.min():.4g} to "
            f"{pixels.max():.4g}; scale them first"
        )
    return pixels


def _strip(latents: NDArray[np.float64], column: int) -> list[int]:
    """Return rows from low to high along one latent, with the others near their medians."""
    count = len(latents)
    order = np.argsort(latents[:, column], kind="stable")
    others = np.delete(latents, column, axis=1)
    spread = others.std(axis=0)
    away = (others - np.median(others, axis=0)) / np.where(spread > 0, spread, 1)
    distance = np.square(away).sum(axis=1)
    chosen = []
    for quantile in np.linspace(_LOWEST, 1 - _LOWEST, min(IN_A_STRIP, count)):
        middle = round(float(quantile) * (count - 1))
        reach = int(_LOWEST * count)
        places = np.arange(max(0, middle - reach), min(count, middle + reach + 1))
        # Of equally good rows the one at the quantile itself comes first.
        near = order[places[np.argsort(np.abs(places - middle), kind="stable")]]
        chosen.append(int(near[distance[near].argmin()]))
    # Neighbouring windows do not meet, so values grow along the strip.
    return chosen


def _written(values: NDArray[np.float64]) -> list[str]:
    # Enough digits that the values of a strip differ.
    span = float(np.ptp(values))
    digits = int(np.clip(2 - math.floor(math.log10(span)), 0, 8)) if span > 0 else 2
    return [number(float(value), digits) for value in values]


def _encoded(images: NDArray[np.float32], rows: Sequence[int]) -> dict[int, bytes]:
    """Return PNG files of the chosen images, small enough together for a page."""
    height, width = images.shape[2:]
    for side in _SIDES:
        scale = min(1.0, side / max(height, width))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        encoded = {row: _png(images[row], size if scale < 1 else None) for row in set(rows)}
        if sum(len(encoded[row]) for row in rows) <= _BYTES:
            break
    return encoded


def _png(image: NDArray[np.float32], size: tuple[int, int] | None) -> bytes:
    from PIL import Image

    pixels = np.moveaxis(np.rint(image * 255).astype(np.uint8), 0, -1)
    grey = pixels.shape[-1] == 1
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))
    if size is not None:
        picture = picture.resize(size, Image.Resampling.BOX)
    buffer = BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
