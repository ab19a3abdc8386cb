"""Cars3D, from the archive of its official meshes or a folder of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from demix._support.errors import DemixError, demix_errors, shortened
from demix._support.files import open_regular
from demix._support.memory import check_memory
from demix.papers.datasets.archives import open_tar
from demix.papers.datasets.factor_images import (
    ArrayPixels,
    FactorColumn,
    FactorImages,
    Progress,
    grid,
)
from demix.papers.datasets.mat_files import read_mat

_AZIMUTHS, _ELEVATIONS = 24, 4
_CARS, _SIDE = 183, 128
# The official meshes have a few hundred kilobytes each.
_LARGEST = 2**25


def open_cars3d(path: Path, *, callback: Progress) -> FactorImages:
    """Open ``nips2015-analogy-data.tar.gz``, or its folder ``cars`` of meshes (Reed et al. 2015).

    Each of 183 files ``car_..._mesh.mat`` holds one car, seen from 24 azimuths and 4 elevations at
    128 x 128. Images are read once and reduced to 64 x 64, the mean of four pixels each, 216 MB.
    Cars are numbered from 0 to 182 in the order of their names.
    """
    cars: dict[str, np.ndarray] = {}
    for name, content in _meshes(path):
        callback(len(cars), _CARS, f"cars of {path.name}")
        car, views = PurePosixPath(name).stem, _views(name, content, path)
        first = next(iter(cars.values()), views)
        if car in cars or len(cars) == _CARS or views.shape != first.shape:
            raise DemixError(
                f"Expected up to {_CARS} cars of one size in {path}, each once, but "
                f"{shortened(name)} is one more, or has another size; fetch it again."
            )
        if not cars:
            check_memory(2 * _CARS * views.nbytes, f"Reading {path}", "free some")
        cars[car] = views
    if not cars:
        raise DemixError(
            f"Expected car_..._mesh.mat files in {path}, but there are none; give "
            "nips2015-analogy-data.tar.gz or its folder data/cars."
        )
    callback(len(cars), len(cars), f"cars of {path.name}")
    names = tuple(sorted(cars))
    columns = (
        FactorColumn("elevation", "ordinal"),
        FactorColumn("azimuth", "periodic", period=_AZIMUTHS),
        FactorColumn("object_type", "categorical", levels=names),
    )
    factors = grid((len(names), _AZIMUTHS, _ELEVATIONS))[:, ::-1].copy()
    images = np.concatenate([cars[name] for name in names])
    return FactorImages("cars3d", ArrayPixels(images), columns, factors)


def is_cars3d(path: Path) -> bool:
    """Tell whether a folder or an archive may hold meshes of cars."""
    if path.is_dir():
        return any(path.glob("car_*_mesh.mat")) or any(path.glob("cars/car_*_mesh.mat"))
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def _meshes(path: Path) -> Iterator[tuple[str, bytes]]:
    """Go through the files of an archive or a folder; nothing is unpacked to the disk."""
    if path.is_dir():
        for file in sorted([*path.glob("*_mesh.mat"), *path.glob("cars/*_mesh.mat")]):
            with open_regular(file) as mesh:
                yield file.name, mesh.read(_LARGEST)  # more is cut off, and so refused
        return
    problem = f"Expected a whole tar archive, but {path} is truncated or damaged"
    with demix_errors(problem, "fetch it again"), open_tar(path) as archive:
        for member in archive:
            # A link has no size of its own.
            if not (member.isreg() and PurePosixPath(member.name).match("car_*_mesh.mat")):
                continue
            if member.size > _LARGEST:
                raise EOFError(f"{shortened(member.name)} claims {member.size} bytes")
            opened = archive.extractfile(member)
            assert opened is not None
            yield member.name, opened.read()


def _views(name: str, content: bytes, path: Path) -> np.ndarray:
    """Return the images ``(96, 64, 64, 3)`` of one car, elevations fastest."""
    problem = f"Expected a whole MATLAB file with the array 'im', but {name} in {path} is truncated"
    with demix_errors(f"{problem} or damaged", "fetch it again"):
        views = read_mat(content, "im")
        if views is None:
            raise ValueError("there is none")
    if (
        views.dtype != np.uint8
        or views.ndim != 5
        or views.shape[2:] != (3, 24, 4)
        or min(views.shape[:2]) < 2
        or max(views.shape[:2]) > _SIDE
    ):
        raise DemixError(
            f"Expected uint8 of shape ({_SIDE}, {_SIDE}, 3, {_AZIMUTHS}, {_ELEVATIONS}) in 'im' of "
            f"{name} in {path}, but found {views.dtype} of shape {views.shape}."
        )
    images = views.transpose(3, 4, 0, 1, 2).reshape(-1, *views.shape[:3])
    number, height, width, channels = images.shape
    halved = images[:, : height // 2 * 2, : width // 2 * 2].reshape(
        number, height // 2, 2, width // 2, 2, channels
    )
    # Four bytes and a half add up to less than a short holds.
    return ((halved.sum(axis=(2, 4), dtype=np.uint16) + 2) // 4).astype(np.uint8)
