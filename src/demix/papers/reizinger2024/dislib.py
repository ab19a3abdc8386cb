"""Table 4 of Reizinger et al. (2024): factors that a classifier of another one tells."""

from __future__ import annotations

from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Experiment, Model


def _figures(**factors: tuple[float, float, float]) -> dict[str, dict[Model, float]]:
    models = ("input", "mlp", "cnn")
    return {name: dict(zip(models, figures, strict=True)) for name, figures in factors.items()}


DISLIB = Experiment(
    name="ce-dislib",
    title="Table 4: factors in the features of a classifier",
    scores=("r", "r2", "accuracy"),
    source="Reizinger et al. (2024), Cross-Entropy Is All You Need To Invert the Data Generating "
    "Process",
    data="official files of DisLib (see 'demix download'), folders that `demix render sprites`, "
    "`shapes` or `3dident` wrote, or an .npz file of COIL-100",
    notes=(
        "Pearson's r and R² of linear read-outs from the features of a network that was trained to "
        "tell one factor only; in brackets the paper's r. Ridge regressions are fitted on the "
        "images that the network was trained on; other images choose its weights and the penalty, "
        "and yet others are scored. Intervals are those of a bootstrap over the latter; with "
        "several seeds, value and ends are means over them.",
        "Periodic factors are read out as sine and cosine, categories as one number for each, 1 "
        "where it is and 0 elsewhere; r and R² are of all these numbers together.",
        "Untrained: the same network as it was initialised. Input: the pixels, reduced to at most "
        "1024 numbers.",
        "A few classes fix few directions of the features, one less than there are classes; what "
        "else can be read out is what the network has kept, not what Theorem 1 promises.",
    ),
    rows=(
        ReadOutRow(
            1, "dsprites", "dSprites", "shape",
            _figures(
                shape=(0.26, 0.94, 1.0), scale=(0.62, 0.98, 0.92),
                posX=(0.92, 0.97, 0.99), posY=(0.92, 0.97, 0.99),
            ),
        ),
        ReadOutRow(
            2, "shapes3d", "Shapes3D", "shape",
            _figures(
                shape=(0.42, 1.0, 1.0), scale=(0.21, 0.89, 0.99), orientation=(0.04, 0.85, 0.93)
            ),
        ),
        ReadOutRow(
            3, "mpi3d_toy", "MPI3D toy", "object_shape",
            _figures(
                object_shape=(0.03, 0.71, 0.97),
                horizontal_axis=(0.28, 0.76, 0.90), vertical_axis=(0.46, 0.76, 0.84),
            ),
        ),
        ReadOutRow(
            4, "mpi3d_real", "MPI3D real", "object_shape",
            _figures(
                object_shape=(0.19, 0.88, 0.98),
                horizontal_axis=(0.14, 0.74, 0.83), vertical_axis=(0.44, 0.54, 0.71),
            ),
        ),
        ReadOutRow(
            5, "cars3d", "Cars3D", "object_type",
            _figures(object_type=(0.05, 0.63, 0.77), elevation=(0.15, 0.87, 0.78)),
        ),
        ReadOutRow(
            6, "smallnorb", "smallNORB", "category",
            _figures(category=(0.22, 0.94, 1.0), elevation=(0.15, 0.83, 0.79)),
        ),
        ReadOutRow(7, "mpi3d_realistic", "MPI3D realistic", "object_shape"),
        ReadOutRow(8, "sprites", "sprites", "shape"),
        ReadOutRow(9, "shapes", "shapes", "shape"),
        ReadOutRow(10, "3dident", "3DIdent", "object colour"),
        ReadOutRow(11, "coil100", "COIL-100", "object"),
    ),
)  # fmt: skip
