"""Folders of rendered images as images with known factors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from demix.papers.datasets.dislib.columns import FactorColumn
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.dislib.pixels import ArrayPixels
from demix.papers.scenes.opening import open_rendered

# Latents whose colours come round again, and after how much of their latent.
_TURN = {"shapes": 1 / 0.45, "3dident": 4.0, "causal3dident": 4.0}
_COLOURS = 8


def open_scene(path: Path) -> FactorImages:
    """Open a folder that ``demix render`` wrote; its images stay there.

    The factors are the latents. Hues are periodic: a whole turn of the colour circle, of which a
    scene shows a part. In ``3dident`` nothing is a category; there ``object colour`` is one more
    factor, the hue of the object in eight equal parts, which a classifier can be trained on.
    """
    rendered = open_rendered(path)
    scene = rendered.order.scene
    columns = [
        FactorColumn(name, "categorical", levels=tuple(rendered.categories[name]))
        if name in rendered.categories
        else FactorColumn(name, "periodic", period=_TURN[scene])
        if name.endswith("hue")
        else FactorColumn(name, "continuous")
        for name in rendered.names
    ]
    values = np.asarray(rendered.latents)
    if not rendered.categories:
        hue = values[:, rendered.names.index("object hue")]
        colour = np.clip(np.floor((hue + 1) / 2 * _COLOURS), 0, _COLOURS - 1)
        values = np.column_stack([values, colour.astype(np.float32)])
        levels = tuple(f"part {part + 1}" for part in range(_COLOURS))
        columns.append(FactorColumn("object colour", "categorical", levels=levels))
    return FactorImages(scene, ArrayPixels(rendered.images), tuple(columns), values)
