"""Small films of moving rectangles, written as MOTS annotations by pycocotools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pycocotools import mask as coco


def rectangle(size: tuple[int, int], top: int, left: int, height: int, width: int) -> np.ndarray:
    """An image with one filled rectangle, cut off where it leaves the image."""
    image = np.zeros(size, dtype=np.uint8, order="F")
    image[top : top + height, max(0, left) : max(0, left + width)] = 1
    return image


def line(frame: int, identity: int, image: np.ndarray) -> str:
    """One object of one frame."""
    code = coco.encode(np.asfortranarray(image))["counts"].decode()
    return f"{frame} {identity} {identity // 1000} {image.shape[0]} {image.shape[1]} {code}"


def write(path: Path, lines: list[str]) -> Path:
    """A file of such lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path
