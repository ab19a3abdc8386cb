"""All scenes, by name, and what can be done with any of them."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, shortened
from demix._support.files import write_atomic
from demix.papers.scenes.base import Scene
from demix.papers.scenes.shapes import Shapes
from demix.papers.scenes.sprites import Sprites
from demix.papers.scenes.three_d_ident import CausalThreeDIdent, ThreeDIdent

SCENES: dict[str, Scene] = {
    scene.name: scene for scene in (ThreeDIdent(), CausalThreeDIdent(), Shapes(), Sprites())
}
_LARGEST = 1024  # what a renderer keeps of a picture this large takes half a gigabyte


def scene_named(scene: str | Scene) -> Scene:
    """Return a scene by its name; a scene is returned as it is.

    Examples
    --------
    >>> from demix.papers import scene_named
    >>> scene_named("sprites").latents
    ('shape', 'scale', 'orientation', 'x', 'y')
    """
    if isinstance(scene, Scene):
        return scene
    if scene not in SCENES:
        raise DemixError(f"Unknown scene {scene!r}; known are {', '.join(SCENES)}.")
    return SCENES[scene]


def sample_latents(scene: str | Scene, n: int, seed: int = 0) -> np.ndarray:
    """Draw latents ``(n, d)`` of a scene, in float32; the first of more are the same.

    Examples
    --------
    >>> from demix.papers import sample_latents
    >>> sample_latents("3dident", 5, seed=0).shape
    (5, 10)
    """
    return scene_named(scene).sample(check_count(n), seed)


def render(scene: str | Scene, latents: Any, size: int = 64) -> np.ndarray:
    """Render images ``(N, size, size, 3)`` of latents, as bytes.

    The same latents give the same bytes, whatever is rendered beside them.

    Parameters
    ----------
    scene : str or Scene
        For example ``"3dident"``, the scene of Zimmermann et al. (2021), Sec. 5.3.
    latents : array_like (N, d)
        As :func:`sample_latents` draws them.
    size : int
        Width and height.

    Examples
    --------
    >>> from demix.papers import render, sample_latents
    >>> images = render("3dident", sample_latents("3dident", 2, seed=0), size=32)
    >>> images.shape, images.dtype
    ((2, 32, 32, 3), dtype('uint8'))
    """
    chosen, size = scene_named(scene), check_size(size)
    z = chosen.check(latents)
    images = np.empty((len(z), size, size, 3), dtype=np.uint8)
    for image, row in zip(images, z, strict=True):
        image[:] = chosen.image(row, size)
    return images


def check_size(size: int) -> int:
    """Return a width that can be rendered."""
    if not 1 <= size <= _LARGEST:
        raise DemixError(
            f"The size of images must be a whole number from 1 to {_LARGEST}, but got {size}."
        )
    return int(size)


def check_count(n: int) -> int:
    """Return a number of images that can be rendered."""
    if not 1 <= n < 2**53:
        raise DemixError(
            f"The number of images must be from 1 to below 2^53, but got {shortened(str(n))}."
        )
    return int(n)


_COLUMNS = 7
_MARGIN, _LABEL = 4, 120


def traversals(scene: str | Scene) -> np.ndarray:
    """Return latents ``(d, 7, d)``: each row varies one latent and keeps the others typical."""
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
    """Write a PNG with a row of images for each latent, as Zimmermann et al. (2021), Fig. 2."""
    from PIL import Image, ImageDraw, PngImagePlugin

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
    raw, mark = io.BytesIO(), PngImagePlugin.PngInfo()
    mark.add_text("Software", "demix")
    sheet.save(raw, format="PNG", pnginfo=mark)
    return write_atomic(file, raw.getvalue())
