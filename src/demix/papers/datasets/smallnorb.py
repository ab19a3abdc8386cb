"""smallNORB, from a folder of its official matrix files."""

import gzip
import math
import struct
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError, demix_errors
from demix._support.memory import check_memory
from demix.data.npy_files import DEFLATED
from demix.papers.datasets.factor_images import ArrayPixels, FactorColumn, FactorImages

PARTS = ("5x46789x9x18x6x2x96x96-training", "5x01235x9x18x6x2x96x96-testing")
COLUMNS = (
    FactorColumn("category", "categorical", levels=("animal", "human", "plane", "truck", "car")),
    # The third animal has nothing to do with the third car.
    FactorColumn("instance", "categorical", within="category"),
    FactorColumn("elevation", "ordinal"),
    # 0, 2, ..., 34: in steps of ten degrees.
    FactorColumn("azimuth", "periodic", period=36),
    FactorColumn("lighting", "categorical"),
)


def open_smallnorb(path: Path) -> FactorImages:
    """Open a folder of the matrix files of smallNORB (LeCun et al. 2004), compressed or not.

    The left ones of two times 24 300 pairs of images, those for training first; one of the two
    parts may be missing.
    """
    parts = [_part(path, part) for part in PARTS if _file(path, part, "dat") is not None]
    if not parts:
        raise DemixError(
            f"Expected smallnorb-{PARTS[0]}-dat.mat or -dat.mat.gz in {path}, but there is none."
        )
    sizes = sorted({images.shape[1:] for images, _ in parts})
    if len(sizes) > 1:
        raise DemixError(
            f"Expected images of one size in {path}, but got {sizes[0]} and {sizes[1]}; fetch them "
            "again."
        )
    images, factors = (np.concatenate(each) for each in zip(*parts, strict=True))
    return FactorImages("smallnorb", ArrayPixels(images), COLUMNS, factors)


def is_smallnorb(path: Path) -> bool:
    """Tell whether a folder holds images of smallNORB."""
    return path.is_dir() and any(path.glob("smallnorb-*-dat.mat*"))


def _part(path: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the left images ``(N, 96, 96)`` of a part, and their factors ``(N, 5)``."""
    found = {}
    for kind in ("dat", "cat", "info"):
        file = _file(path, part, kind)
        if file is None:
            raise DemixError(
                f"Expected smallnorb-{part}-{kind}.mat or -{kind}.mat.gz beside the images, but "
                f"it is not in {path}; fetch it."
            )
        found[kind] = read_matrix(file)
    images, categories, others = found["dat"], found["cat"], found["info"]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1] != 2:
        raise DemixError(
            f"Expected pairs of images (N, 2, 96, 96) of uint8 in smallnorb-{part}-dat.mat, but "
            f"found {images.dtype} of shape {images.shape}."
        )
    if categories.shape != (len(images),) or others.shape != (len(images), 4):
        raise DemixError(
            f"Every pair of smallnorb-{part} must have a category and four other factors, but "
            f"{len(images)} pairs have categories of shape {categories.shape} and others of shape "
            f"{others.shape}; are the files of one set?"
        )
    factors = np.column_stack([categories, others]).astype(np.float32)
    return images[:, 0], factors


def _file(path: Path, part: str, kind: str) -> Path | None:
    name = f"smallnorb-{part}-{kind}.mat"
    return next((path / n for n in (name, f"{name}.gz") if (path / n).is_file()), None)


_TYPES = {
    0x1E3D4C51: "<f4",
    0x1E3D4C53: "<f8",
    0x1E3D4C54: "<i4",
    0x1E3D4C55: "u1",
    0x1E3D4C56: "<i2",
}
_MOST_DIMENSIONS = 8


def read_matrix(path: Path) -> np.ndarray:
    """Return the array of a file: its type, how many sizes, at least three sizes, the numbers."""
    problem = f"Expected a whole matrix file, but {path} is truncated or damaged"
    with (
        demix_errors(problem, "fetch it again"),
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file,
    ):
        kind, dimensions = struct.unpack("<ii", file.read(8))
        if kind not in _TYPES or not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise DemixError(
                f"Expected a binary matrix file, as NORB has them, but {path} begins otherwise."
            )
        written = max(3, dimensions)
        sizes = struct.unpack(f"<{written}i", file.read(4 * written))[:dimensions]
        if min(sizes) < 1:
            raise DemixError(f"Expected a filled matrix, but {path} has the shape {sizes}.")
        needed = math.prod(sizes) * np.dtype(_TYPES[kind]).itemsize
        if needed > DEFLATED * path.stat().st_size:
            raise EOFError(f"it claims {needed} bytes that are not there")
        check_memory(2 * needed, f"Reading {path}", "free some")
        numbers = np.frombuffer(file.read(needed), dtype=np.uint8)
        if len(numbers) < needed:
            raise EOFError(f"it holds {len(numbers)} of {needed} bytes")
        file.read(1)  # the end, where the checksum of a compressed one is compared
        return numbers.view(_TYPES[kind]).reshape(sizes)
