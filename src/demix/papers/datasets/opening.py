"""Opening images with known factors, whichever they are."""

import os
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import is_there
from demix.data.formats import looks_like
from demix.papers.datasets.cars3d import is_cars3d, open_cars3d
from demix.papers.datasets.coil100 import KEYS, open_coil100
from demix.papers.datasets.factor_images import (
    ArrayPixels,
    FactorColumn,
    FactorImages,
    Progress,
    array_names,
)
from demix.papers.datasets.grids import DSPRITES_KEYS, open_dsprites, open_mpi3d, open_shapes3d
from demix.papers.datasets.smallnorb import is_smallnorb, open_smallnorb
from demix.papers.scenes.folder import META, open_rendered

EXPECTED = (
    "the official file of dSprites, 3D Shapes or MPI3D, the archive or folder of Cars3D, the "
    "folder of smallNORB, an .npz file of COIL-100, or a folder that 'demix render' wrote"
)


@np.errstate(over="ignore")  # numbers too large for float32 are refused in a sentence
def open_factor_images(
    path: str | Path, *, callback: Progress = lambda done, total, what: None
) -> FactorImages:
    """Open images with known factors; what the path holds says which they are.

    Images stay in their file where its format allows, and else are read once, as bytes.

    Parameters
    ----------
    path : str or Path
        ``dsprites_*.npz``, ``3dshapes.h5``, ``mpi3d_*.npz``, ``nips2015-analogy-data.tar.gz`` or
        its folder ``cars`` (Cars3D), a folder of the matrix files of smallNORB, an ``.npz`` file
        of COIL-100, or a folder of ``demix render``.
    callback : callable
        ``callback(done, total, what)`` while a file is read.

    Examples
    --------
    >>> import tempfile
    >>> from demix.papers import Order, open_factor_images, render_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = open_factor_images(render_folder(Order("sprites", n=2, size=16), folder))
    ...     found.name, found.names, found.column("shape").kind
    ('sprites', ('shape', 'scale', 'orientation', 'x', 'y'), 'categorical')
    """
    path = Path(path)
    if not os.path.isdir(path) and not is_there(path):
        raise DemixError(f"Expected {EXPECTED}, but {path} does not exist.")
    if (path / META).is_file():
        return open_scene(path)
    if is_smallnorb(path):
        return open_smallnorb(path)
    if is_cars3d(path):
        return open_cars3d(path, callback=callback)
    is_file = not path.is_dir()
    if is_file and (looks_like(path) == "an HDF5 file" or path.suffix in (".h5", ".hdf5")):
        return open_shapes3d(path)
    if is_file and path.suffix == ".npz":
        held = set(array_names(path))
        if held >= DSPRITES_KEYS:
            return open_dsprites(path, callback=callback)
        if held >= KEYS.keys():
            return open_coil100(path, callback=callback)
        if "images" in held:
            return open_mpi3d(path, callback=callback)
    raise DemixError(f"Expected {EXPECTED}, but {path} is none of them.")


# Latents whose colours come round again, and after how much of their latent.
_TURN = {"shapes": 1 / 0.45, "3dident": 4.0, "causal3dident": 4.0}
_COLOURS = 8


def open_scene(path: Path) -> FactorImages:
    """Open a folder that ``demix render`` wrote; its images stay there, and latents are factors.

    Hues are periodic. In ``3dident`` nothing is a category that a classifier can be trained on;
    there ``object colour`` is one more factor, the hue of the object in eight equal parts.
    """
    rendered = open_rendered(path, verify=True)
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
