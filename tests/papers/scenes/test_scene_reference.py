"""The fast renderer beside Blender."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

pytest.importorskip("bpy", reason="bpy, of the extra 'blender', is not installed")
pytest.importorskip("embreex", reason="embreex, of the extra `papers`, is not installed")

from demix.papers.scenes.blender import Blender
from demix.papers.scenes.registry import SCENES

SIZE, IMAGES = 128, 3


def similarity(a: np.ndarray, b: np.ndarray) -> float:
    """SSIM of two images of bytes (Wang et al. 2004), with windows of 7 x 7."""
    a, b = a.astype(float), b.astype(float)

    def mean(x: np.ndarray) -> np.ndarray:
        return uniform_filter(x, size=(7, 7, 1))

    mean_a, mean_b = mean(a), mean(b)
    both = mean(a * b) - mean_a * mean_b
    spread = mean(a * a) - mean_a**2 + mean(b * b) - mean_b**2
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    map_of = (2 * mean_a * mean_b + c1) * (2 * both + c2)
    return float((map_of / ((mean_a**2 + mean_b**2 + c1) * (spread + c2)))[3:-3, 3:-3].mean())


@pytest.fixture(scope="module")
def blender():
    return Blender(SIZE, samples=32)


def test_images_and_outlines_agree(blender):
    scene = SCENES["3dident"]
    alike, over, brighter = [], [], []
    for z in scene.sample(IMAGES, seed=5):
        ours, theirs = scene.image(z, SIZE), blender.image(z)
        alike.append(similarity(ours, theirs))
        brighter.append((ours.astype(float) - theirs).mean())
        mine, other = scene.cover(z, SIZE) > 0.5, blender.cover(z) > 0.5
        over.append((mine & other).sum() / (mine | other).sum())
    assert np.mean(alike) >= 0.85
    assert np.mean(over) >= 0.95
    assert np.abs(brighter).max() < 2
    # Different latents are told apart.
    assert similarity(scene.image(scene.sample(2, seed=6)[1], SIZE), theirs) < 0.85
