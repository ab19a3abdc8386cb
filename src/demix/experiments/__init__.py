"""The papers' tables and figures, declared as data."""

from demix.errors import DemixError
from demix.experiments.ce import (
    BATCH_CLUSTERS_TAILS,
    CLUSTER_VECTORS,
    DIET,
    GENEALOGY,
    GENNORM,
    LABEL_NOISE,
    SUPERVISED,
)
from demix.experiments.clica import MARGINAL, TABLE_1, TABLE_2
from demix.experiments.declaration import (
    Distribution,
    Experiment,
    Model,
    Panel,
    Point,
    Row,
    varying,
)
from demix.experiments.dislib import DISLIB
from demix.experiments.factors import FactorRow
from demix.experiments.imagenet_x import FIGURE_3
from demix.experiments.kitti import TABLE_3
from demix.experiments.labels import Budget, LabelRow
from demix.experiments.pairs import Laptop, PairRow
from demix.experiments.readouts import ReadOutRow, largest_side, most_images
from demix.experiments.scales import SCALES, Scale, scale_named
from demix.experiments.scenes import SceneRow
from demix.experiments.three_d_ident import TABLES_4_5
from demix.experiments.videos import VideoRow

EXPERIMENTS: dict[str, Experiment[Row]] = {
    experiment.name: experiment
    for experiment in (
        TABLE_1,
        TABLE_2,
        TABLE_3,
        TABLES_4_5,
        MARGINAL,
        DIET,
        SUPERVISED,
        CLUSTER_VECTORS,
        GENNORM,
        BATCH_CLUSTERS_TAILS,
        LABEL_NOISE,
        FIGURE_3,
        GENEALOGY,
        DISLIB,
    )
}

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Budget",
    "Distribution",
    "Experiment",
    "FactorRow",
    "LabelRow",
    "Laptop",
    "Model",
    "PairRow",
    "Panel",
    "Point",
    "ReadOutRow",
    "Row",
    "Scale",
    "SceneRow",
    "VideoRow",
    "experiment_named",
    "largest_side",
    "most_images",
    "scale_named",
    "varying",
]


def experiment_named(name: str) -> Experiment[Row]:
    """Return the experiment called ``name``."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise DemixError(f"Unknown experiment {name!r}; known are {known}.")
    return EXPERIMENTS[name]
