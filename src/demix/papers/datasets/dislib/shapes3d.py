"""3D Shapes, from its official ``.h5`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, need, reason, shortened
from demix._support.memory import check_memory
from demix.data.formats import check_kind
from demix.papers.datasets.dislib.columns import FactorColumn
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.dislib.pixels import H5Pixels

COLUMNS = (
    # Ten hues, a tenth of the colour circle apart: the next one would be the first again.
    FactorColumn("floor_hue", "periodic", period=1.0),
    FactorColumn("wall_hue", "periodic", period=1.0),
    FactorColumn("object_hue", "periodic", period=1.0),
    FactorColumn("scale", "continuous"),
    FactorColumn("shape", "categorical", levels=("cube", "cylinder", "sphere", "pill")),
    FactorColumn("orientation", "continuous"),
)


def open_shapes3d(path: Path) -> FactorImages:
    """Open ``3dshapes.h5``: 480 000 images of 64 x 64, which stay in the file.

    References
    ----------
    C. Burgess, H. Kim (2018). *3D Shapes Dataset.*
    """
    h5py = need("h5py", "3D Shapes", "papers")
    check_kind(path, "an HDF5 file")
    try:
        file = h5py.File(path, "r")
    except Exception as error:  # HDF5 fails in many ways
        raise _damaged(path, error) from error
    try:
        images, labels = _arrays(file, path, h5py.Dataset, h5py.HardLink)
    except DemixError:
        file.close()
        raise
    except Exception as error:
        file.close()
        raise _damaged(path, error) from error
    return FactorImages("shapes3d", H5Pixels(images, str(path)), COLUMNS, labels)


def _arrays(file: Any, path: Path, kind: Any, hard: Any) -> tuple[Any, np.ndarray]:
    """Return the images, which stay in the file, and the labels ``(N, 6)``."""
    # What lies in other files may be a pipe, on which a reader waits for ever.
    for name in ("images", "labels"):
        if not isinstance(file.get(name, getlink=True), hard | None):
            raise DemixError(f"Expected {name!r} in {path}, but it is a link; fetch it again.")
    images, held = file.get("images"), file.get("labels")
    if not isinstance(images, kind) or not isinstance(held, kind):
        names = ", ".join(map(shortened, [*file][:10])) or "none"
        raise DemixError(f"Expected 'images' and 'labels' in {path}, but it holds {names}.")
    if any(one.external or one.is_virtual for one in (images, held)):
        raise DemixError(f"Expected all numbers in {path} itself, but it names other files.")
    check_memory(2 * held.size * held.dtype.itemsize, f"Reading {path}", "fetch it again")
    labels = np.asarray(held)
    if images.dtype != np.uint8 or images.ndim != 4 or labels.ndim != 2:
        raise DemixError(
            f"Expected images (N, H, W, C) of uint8 and labels (N, {len(COLUMNS)}) in {path}, but "
            f"found {images.dtype} of shape {images.shape} and labels of shape {labels.shape}."
        )
    return images, labels.astype(np.float32)


def _damaged(path: Path, error: BaseException) -> DemixError:
    return DemixError(
        f"Expected a whole HDF5 file, but {path} is truncated or damaged ({reason(error)}); fetch "
        "it again."
    )
