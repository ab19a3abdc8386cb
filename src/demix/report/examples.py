"""Images along each latent: what changes while one latent grows and the others stay similar."""

import math
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix.report.blocks import Example, Gallery
from demix.report.figures import left_out
from demix.report.style import number
from demix.report.words import said

MOST_STRIPS = 8
IN_A_STRIP = 7
_LOWEST = 0.02  # the lowest and the highest rows, often outliers, are left out of a strip
_SIDES = (128, 96, 64, 48, 32)  # in pixels: the first at which all images fit into the bytes
_BYTES = 270_000


def nearest_examples(images: ArrayLike, latents: ArrayLike) -> Gallery:
    """Return strips of images from low to high along each latent.

    A strip visits quantiles of its latent. Of the images at a quantile (2 percent of all to either
    side) it shows the one whose other latents are nearest to their medians, so that little else
    changes along a strip.

    Images ``(M, C, H, W)`` of three or four channels are shown in colour, others as the mean of
    their channels. Brightness is scaled to 0 to 1 if it goes beyond. The first 8 columns of their
    latents ``(M, n)`` get a strip.
    """
    values, pixels = np.asarray(latents, dtype=float), np.asarray(images, dtype=np.float32)
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        pixels = (pixels - low) / max(high - low, 1e-12)
    chosen = [_strip(values, j) for j in range(min(values.shape[1], MOST_STRIPS))]
    pngs = _encoded(pixels, [row for strip in chosen for row in strip])
    rows = {}
    for j, strip in enumerate(chosen):
        name, along = f"latent {j + 1}", values[strip, j]
        span = float(np.ptp(along))  # enough digits that the values of a strip differ
        digits = int(np.clip(2 - math.floor(math.log10(span)), 0, 8)) if span > 0 else 2
        words = [number(float(value), digits) for value in along]
        rows[name] = [
            Example(pngs[row], value, alt=f"Image {row}, where {name} is {value}.")
            for row, value in zip(strip, words, strict=True)
        ]
    rest = left_out(MOST_STRIPS, values.shape[1], "latents")
    return Gallery(rows, **said("examples", rest=rest))


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
    return chosen  # their values grow, since windows do not meet


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

    shade = np.moveaxis(image, 0, -1) if len(image) in (3, 4) else image.mean(axis=0)
    picture = Image.fromarray(np.rint(shade * 255).astype(np.uint8))
    if size is not None:
        picture = picture.resize(size, Image.Resampling.BOX)
    buffer = BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
