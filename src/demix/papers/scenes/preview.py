"""A contact sheet: what each latent does."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from demix._support.files import write_atomic
from demix.papers.scenes.base import Scene
from demix.papers.scenes.registry import check_size, scene_named

_COLUMNS = 7
_MARGIN, _LABEL = 4, 120


def traversals(scene: str | Scene) -> np.ndarray:
    """Return latents ``(d, 7, d)``: each row varies one latent and keeps the others typical.

    Examples
    --------
    >>> from demix.papers.scenes.preview import traversals
    >>> traversals("3dident")[2, :, 2].tolist()
    [-1.0, -0.6666..., -0.3333..., 0.0, 0.3333..., 0.6666..., 1.0]
    """
    chosen = scene_named(scene)
    count = len(chosen.latents)
    z = np.tile(np.array(chosen.typical, dtype=np.float32), (count, _COLUMNS, 1))
    for k, name in enumerate(chosen.latents):
        if name in chosen.categories:
            z[k, :, k] = np.arange(_COLUMNS) % len(chosen.categories[name])
        else:
            z[k, :, k] = np.linspace(-1, 1, _COLUMNS)
    return z


def write_preview(scene: str | Scene, file: str | Path, size: int = 96) -> Path:
    """Write a sheet with a row for each latent as a PNG, in the manner of a traversal figure.

    Parameters
    ----------
    scene : str or Scene
        The scene.
    file : str or Path
        Where to write.
    size : int
        Width and height of each image.

    References
    ----------
    Zimmermann et al. (2021), Fig. 2.
    """
    from PIL import Image, ImageDraw

    chosen, size = scene_named(scene), check_size(size)
    z = traversals(chosen)
    step = size + _MARGIN
    sheet = Image.new("RGB", (_LABEL + _COLUMNS * step, len(z) * step + _MARGIN), "white")
    pen = ImageDraw.Draw(sheet)
    for row, name in enumerate(chosen.latents):
        top = _MARGIN + row * step
        pen.text((_LABEL - 8, top + size / 2), name, fill="black", anchor="rm")
        for column in range(_COLUMNS):
            image = Image.fromarray(chosen.image(z[row, column], size))
            sheet.paste(image, (_LABEL + column * step, top))
    raw = io.BytesIO()
    sheet.save(raw, format="PNG")
    return write_atomic(file, raw.getvalue())
