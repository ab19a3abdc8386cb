"""Data sets of all combinations of factors: dSprites, 3D Shapes and MPI3D."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, demix_errors, need, shortened
from demix._support.memory import check_memory
from demix.data.formats import check_kind
from demix.data.npy_files import DEFLATED
from demix.papers.datasets.factor_images import (
    FactorColumn,
    FactorImages,
    H5Pixels,
    Progress,
    grid,
    image_array,
    read_array,
)

DSPRITES = (
    FactorColumn("color", "categorical", levels=("white",)),
    FactorColumn("shape", "categorical", levels=("square", "ellipse", "heart")),
    FactorColumn("scale", "continuous"),
    FactorColumn("orientation", "periodic", period=2 * np.pi),
    FactorColumn("posX", "continuous"),
    FactorColumn("posY", "continuous"),
)
DSPRITES_KEYS = {"imgs", "latents_values", "latents_classes"}
SHAPES3D = (
    # Ten hues, a tenth of the colour circle apart: the next one would be the first again.
    FactorColumn("floor_hue", "periodic", period=1.0),
    FactorColumn("wall_hue", "periodic", period=1.0),
    FactorColumn("object_hue", "periodic", period=1.0),
    FactorColumn("scale", "continuous"),
    FactorColumn("shape", "categorical", levels=("cube", "cylinder", "sphere", "pill")),
    FactorColumn("orientation", "continuous"),
)
_MPI3D_COLOURS = ("white", "green", "red", "blue", "brown", "olive")
_MPI3D_SHAPES = ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere")
MPI3D = (
    FactorColumn("object_color", "categorical", levels=_MPI3D_COLOURS),
    FactorColumn("object_shape", "categorical", levels=_MPI3D_SHAPES),
    FactorColumn("object_size", "ordinal", levels=("small", "large")),
    FactorColumn("camera_height", "ordinal", levels=("top", "center", "bottom")),
    FactorColumn("background_color", "categorical", levels=("purple", "sea green", "salmon")),
    # Forty angles of the robot's joints, from one end of their range to the other.
    FactorColumn("horizontal_axis", "ordinal"),
    FactorColumn("vertical_axis", "ordinal"),
)
_VARIANTS = ("mpi3d_toy", "mpi3d_realistic", "mpi3d_real")
# An early release of the toy images has four colours and shapes only, without names.
_EARLY = (*(FactorColumn(column.name, column.kind) for column in MPI3D[:2]), *MPI3D[2:])
_MPI3D_SIZES = {(6, 6, 2, 3, 3, 40, 40): MPI3D, (4, 4, 2, 3, 3, 40, 40): _EARLY}


def open_dsprites(path: Path, *, callback: Progress) -> FactorImages:
    """Open ``dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`` (Matthey et al. 2017).

    Its 737 280 images of 64 x 64 are kept in memory as bits, 377 MB. Shapes are numbered from 0;
    the first and the last orientation are the same. A pickle in the file is never opened.
    """
    values, classes = (read_array(path, key) for key in ("latents_values", "latents_classes"))
    numbers = values.dtype.kind in "biuf" and classes.dtype.kind in "biuf"
    if not numbers or not values.shape == classes.shape == (len(values), len(DSPRITES)):
        raise DemixError(
            f"Expected latents_values and latents_classes (N, {len(DSPRITES)}) of numbers in "
            f"{path}, but their shapes are {values.shape} and {classes.shape}, of {values.dtype} "
            f"and {classes.dtype}; fetch it again."
        )
    factors = values.astype(np.float32)
    factors[:, :2] = classes[:, :2]
    pixels = image_array(path, "imgs", gain=255, callback=callback)
    return FactorImages("dsprites", pixels, DSPRITES, factors)


def open_mpi3d(path: Path, *, callback: Progress) -> FactorImages:
    """Open ``mpi3d_toy.npz``, ``mpi3d_realistic.npz`` or ``mpi3d_real.npz`` (Gondal et al. 2019).

    One image of 64 x 64 for each combination of the factors; only the name says which file it is.
    """
    named = [name for name in _VARIANTS if path.stem.endswith(name.removeprefix("mpi3d_"))]
    if len(named) != 1:
        raise DemixError(
            f"Expected one of {', '.join(f'{name}.npz' for name in _VARIANTS)}, whose names say "
            f"what they show, but got {path}; rename it."
        )
    pixels = image_array(path, "images", callback=callback)
    for sizes, columns in _MPI3D_SIZES.items():
        if pixels.shape[0] == np.prod(sizes):
            return FactorImages(named[0], pixels, columns, grid(sizes))
    counts = " or ".join(str(int(np.prod(sizes))) for sizes in _MPI3D_SIZES)
    raise DemixError(
        f"Expected {counts} images, one for each combination of the factors of MPI3D, but {path} "
        f"holds {pixels.shape[0]}."
    )


def open_shapes3d(path: Path) -> FactorImages:
    """Open ``3dshapes.h5`` (Burgess and Kim 2018): 480 000 images of 64 x 64, which stay there."""
    h5py = need("h5py", "3D Shapes", "papers")
    check_kind(path, "an HDF5 file")
    problem = f"Expected a whole HDF5 file, but {path} is truncated or damaged"
    with demix_errors(problem, "fetch it again"):
        file = h5py.File(path, "r")
        try:
            images, labels = _arrays(file, path, h5py.Dataset, h5py.HardLink)
        except BaseException:
            file.close()
            raise
    return FactorImages("shapes3d", H5Pixels(images, str(path)), SHAPES3D, labels)


def _arrays(file: Any, path: Path, kind: Any, hard: Any) -> tuple[Any, np.ndarray]:
    """Return the images, which stay in the file, and the labels ``(N, 6)``."""
    # Numbers in other files may be behind a pipe, on which a reader waits for ever.
    for name in ("images", "labels"):
        if not isinstance(file.get(name, getlink=True), hard | None):
            raise DemixError(f"Expected {name!r} in {path}, but it is a link; fetch it again.")
    images, held = file.get("images"), file.get("labels")
    if not isinstance(images, kind) or not isinstance(held, kind):
        names = ", ".join(map(shortened, [*file][:10])) or "none"
        raise DemixError(f"Expected 'images' and 'labels' in {path}, but it holds {names}.")
    if any(one.external or one.is_virtual for one in (images, held)):
        raise DemixError(f"Expected all numbers in {path} itself, but it names other files.")
    for one in (images, held):
        if one.size * one.dtype.itemsize > DEFLATED * path.stat().st_size:
            raise EOFError(f"it claims {one.size} numbers that are not there")
        # One is unpacked as a whole, whatever is read of it.
        if math.prod(one.chunks or (0,)) > one.size:
            raise DemixError(f"Expected chunks within the arrays of {path}; fetch it again.")
        check_memory(2 * math.prod(one.chunks or (0,)), f"Reading {path}", "fetch it again")
    # Before they are read: many texts or lists may all be one, of any length.
    numbers = held.dtype.kind in "biuf" and held.ndim == 2
    if images.dtype != np.uint8 or images.ndim != 4 or not numbers:
        raise DemixError(
            f"Expected images (N, H, W, C) of uint8 and labels (N, {len(SHAPES3D)}) of numbers in "
            f"{path}, but found {images.dtype} of shape {images.shape} and {held.dtype} of shape "
            f"{held.shape}."
        )
    for one in (images, held):
        parts = [-(-n // of) for n, of in zip(one.shape, one.chunks or one.shape, strict=True) if n]
        there = one.id.get_num_chunks() if one.chunks else one.id.get_storage_size()
        if there < math.prod(parts) * (one.size > 0):
            raise EOFError("some of its numbers were never written, and would be read as zeros")
    check_memory(2 * held.size * held.dtype.itemsize, f"Reading {path}", "fetch it again")
    return images, np.asarray(held).astype(np.float32)
