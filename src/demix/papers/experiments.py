"""The papers' tables and figures, declared as data."""

from demix._support.errors import DemixError
from demix.papers.reizinger2024.dislib import DISLIB
from demix.papers.reizinger2024.imagenet_x import FIGURE_3
from demix.papers.reizinger2024.tables import (
    BATCH_CLUSTERS_TAILS,
    CLUSTER_VECTORS,
    DIET,
    GENEALOGY,
    GENNORM,
    LABEL_NOISE,
    SUPERVISED,
)
from demix.papers.runner.declaration import (
    Experiment,
    Row,
)
from demix.papers.zimmermann2021.kitti import TABLE_3
from demix.papers.zimmermann2021.tables import MARGINAL, TABLE_1, TABLE_2
from demix.papers.zimmermann2021.three_d_ident import TABLES_4_5

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


def experiment_named(name: str) -> Experiment[Row]:
    """Return the experiment called ``name``."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise DemixError(f"Unknown experiment {name!r}; known are {known}.")
    return EXPERIMENTS[name]
