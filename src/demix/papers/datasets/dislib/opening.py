"""Opening images with known factors, whichever they are."""

from __future__ import annotations

import os
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.files import is_there
from demix.data.formats import looks_like
from demix.papers.datasets.dislib import coil100, dsprites
from demix.papers.datasets.dislib.cars3d import is_cars3d, open_cars3d
from demix.papers.datasets.dislib.coil100 import open_coil100
from demix.papers.datasets.dislib.dsprites import open_dsprites
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.dislib.mpi3d import open_mpi3d
from demix.papers.datasets.dislib.npz import array_names
from demix.papers.datasets.dislib.pixels import Report, silent
from demix.papers.datasets.dislib.scenes import open_scene
from demix.papers.datasets.dislib.shapes3d import open_shapes3d
from demix.papers.datasets.dislib.smallnorb import is_smallnorb, open_smallnorb
from demix.papers.scenes.folder import META

EXPECTED = (
    "the official file of dSprites, 3D Shapes or MPI3D, the archive or folder of Cars3D, the "
    "folder of smallNORB, an .npz file of COIL-100, or a folder that 'demix render' wrote"
)


def open_factor_images(path: str | Path, *, report: Report = silent) -> FactorImages:
    """Open images with known factors; what the path holds says which they are.

    Images stay in their file where its format allows, and else are read once, as bytes.

    Parameters
    ----------
    path : str or Path
        ``dsprites_*.npz``, ``3dshapes.h5``, ``mpi3d_*.npz``, ``nips2015-analogy-data.tar.gz`` or
        its folder ``cars`` (Cars3D), a folder of the matrix files of smallNORB, an ``.npz`` file
        of COIL-100, or a folder of ``demix render``.
    report : callable
        ``report(done, total, what)`` while a file is read.

    Returns
    -------
    FactorImages

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
    if path.is_dir():
        if (path / META).is_file():
            return open_scene(path)
        if is_smallnorb(path):
            return open_smallnorb(path)
        if is_cars3d(path):
            return open_cars3d(path, report=report)
    elif is_cars3d(path):
        return open_cars3d(path, report=report)
    elif looks_like(path) == "an HDF5 file" or path.suffix in (".h5", ".hdf5"):
        return open_shapes3d(path)
    elif path.suffix == ".npz":
        held = set(array_names(path))
        if held >= dsprites.KEYS:
            return open_dsprites(path, report=report)
        if held >= coil100.KEYS:
            return open_coil100(path, report=report)
        if "images" in held:
            return open_mpi3d(path, report=report)
    raise DemixError(f"Expected {EXPECTED}, but {path} is none of them.")
