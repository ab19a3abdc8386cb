"""All scenes, by name, and what can be done with any of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix.papers.scenes.base import Scene
from demix.papers.scenes.causal import CausalThreeDIdent
from demix.papers.scenes.shapes import Shapes
from demix.papers.scenes.sprites import Sprites
from demix.papers.scenes.three_d_ident import ThreeDIdent

SCENES: dict[str, Scene] = {
    scene.name: scene for scene in (ThreeDIdent(), CausalThreeDIdent(), Shapes(), Sprites())
}
# What a renderer keeps of a picture this large takes half a gigabyte.
_LARGEST = 1024


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
    """Draw latents ``(n, d)`` of a scene, in float32.

    Parameters
    ----------
    scene : str or Scene
        For example ``"3dident"``.
    n : int
        How many; the first of more are the same.
    seed : int
        The seed.

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
    """Return a number of images that is not negative."""
    if n < 1:
        raise DemixError(f"The number of images must be at least 1, but got {n}.")
    return int(n)
