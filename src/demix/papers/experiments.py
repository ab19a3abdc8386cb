"""The papers' tables and figures, declared as data."""

from demix._support.errors import DemixError
from demix.papers.reizinger2024.tables import (
    BATCH_CLUSTERS_TAILS,
    CLUSTER_VECTORS,
    DIET,
    DISLIB,
    FIGURE_3,
    GENEALOGY,
    GENNORM,
    LABEL_NOISE,
    SUPERVISED,
)
from demix.papers.runner.experiment import Experiment
from demix.papers.zimmermann2021.tables import MARGINAL, TABLE_1, TABLE_2, TABLE_3, TABLES_4_5

EXPERIMENTS: dict[str, Experiment] = {
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


def experiment_named(name: str) -> Experiment:
    """Return the experiment called ``name``."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise DemixError(f"Unknown experiment {name!r}; known are {known}.")
    return EXPERIMENTS[name]
