"""dSprites, from its official ``.npz`` file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix.papers.datasets.dislib.columns import FactorColumn
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.dislib.npz import image_array, read_array
from demix.papers.datasets.dislib.pixels import Report, silent

KEYS = {"imgs", "latents_values", "latents_classes"}
COLUMNS = (
    FactorColumn("color", "categorical", levels=("white",)),
    FactorColumn("shape", "categorical", levels=("square", "ellipse", "heart")),
    FactorColumn("scale", "continuous"),
    FactorColumn("orientation", "periodic", period=2 * np.pi),
    FactorColumn("posX", "continuous"),
    FactorColumn("posY", "continuous"),
)


def open_dsprites(path: Path, *, report: Report = silent) -> FactorImages:
    """Open ``dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz``: 737 280 images of 64 x 64.

    The official file is compressed, so its images are kept in memory as bits, 377 MB. Zeros and
    ones become 0 and 255. Shapes are numbered from 0, the other factors have the values of the
    file; the first and the last orientation are the same one. The file also holds a pickle about
    its origin, which is never opened.

    References
    ----------
    L. Matthey, I. Higgins, D. Hassabis, A. Lerchner (2017). *dSprites: Disentanglement testing
    Sprites dataset.*
    """
    values, classes = (read_array(path, key) for key in ("latents_values", "latents_classes"))
    if values.shape != classes.shape or values.ndim != 2 or values.shape[1] != len(COLUMNS):
        raise DemixError(
            f"Expected latents_values and latents_classes (N, {len(COLUMNS)}) in {path}, but their "
            f"shapes are {values.shape} and {classes.shape}."
        )
    factors = values.astype(np.float32)
    factors[:, :2] = classes[:, :2]
    pixels = image_array(path, "imgs", gain=255, report=report)
    return FactorImages("dsprites", pixels, COLUMNS, factors)
