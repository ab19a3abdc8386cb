"""MPI3D (toy, realistic and real), from its official ``.npz`` files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from demix._support.errors import DemixError
from demix.papers.datasets.dislib.columns import FactorColumn
from demix.papers.datasets.dislib.factor_images import FactorImages, grid
from demix.papers.datasets.dislib.npz import image_array
from demix.papers.datasets.dislib.pixels import Report, silent

VARIANTS = ("mpi3d_toy", "mpi3d_realistic", "mpi3d_real")
SHAPES = ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere")
COLUMNS = (
    FactorColumn(
        "object_color", "categorical", levels=("white", "green", "red", "blue", "brown", "olive")
    ),
    FactorColumn("object_shape", "categorical", levels=SHAPES),
    FactorColumn("object_size", "ordinal", levels=("small", "large")),
    FactorColumn("camera_height", "ordinal", levels=("top", "center", "bottom")),
    FactorColumn("background_color", "categorical", levels=("purple", "sea green", "salmon")),
    # Forty angles of the robot's joints, from one end of their range to the other.
    FactorColumn("horizontal_axis", "ordinal"),
    FactorColumn("vertical_axis", "ordinal"),
)
# An early release of the toy images has four colours and shapes only, without names.
_SIZES = ((6, 6, 2, 3, 3, 40, 40), (4, 4, 2, 3, 3, 40, 40))


def open_mpi3d(path: Path, *, report: Report = silent) -> FactorImages:
    """Open ``mpi3d_toy.npz``, ``mpi3d_realistic.npz`` or ``mpi3d_real.npz``.

    Each holds 1 036 800 images of 64 x 64, one for each combination of the factors, the last of
    them changing fastest. Which of the three it is can only be told from the name of the file.

    References
    ----------
    M. W. Gondal et al. (2019). *On the Transfer of Inductive Bias from Simulation to the Real
    World: a New Disentanglement Dataset.* NeurIPS.
    """
    name = _variant(path)
    pixels = image_array(path, "images", report=report)
    number = pixels.shape[0]
    for sizes in _SIZES:
        if number == np.prod(sizes):
            few = sizes[0] < len(COLUMNS[0].levels)
            return FactorImages(name, pixels, _unnamed() if few else COLUMNS, grid(sizes))
    counts = " or ".join(str(int(np.prod(sizes))) for sizes in _SIZES)
    raise DemixError(
        f"Expected {counts} images, one for each combination of the factors of MPI3D, but {path} "
        f"holds {number}."
    )


def _variant(path: Path) -> str:
    said = [name for name in VARIANTS if path.stem.endswith(name.removeprefix("mpi3d_"))]
    if len(said) != 1:
        raise DemixError(
            f"Expected one of {', '.join(f'{name}.npz' for name in VARIANTS)}, whose names say "
            f"what they show, but got {path}; rename it."
        )
    return said[0]


def _unnamed() -> tuple[FactorColumn, ...]:
    plain = tuple(FactorColumn(column.name, column.kind) for column in COLUMNS[:2])
    return plain + COLUMNS[2:]
