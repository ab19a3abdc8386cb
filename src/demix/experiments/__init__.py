"""The papers' tables and figures, declared as data."""

from demix.errors import DemixError
from demix.experiments.clica import MARGINAL, TABLE_1, TABLE_2
from demix.experiments.declaration import Distribution, Experiment, Laptop, Model, Row
from demix.experiments.scales import SCALES, Scale, scale_named

EXPERIMENTS = {experiment.name: experiment for experiment in (TABLE_1, TABLE_2, MARGINAL)}

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Distribution",
    "Experiment",
    "Laptop",
    "Model",
    "Row",
    "Scale",
    "experiment_named",
    "scale_named",
]


def experiment_named(name: str) -> Experiment:
    """Return the experiment called ``name``."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise DemixError(f"Unknown experiment {name!r}; known are {known}.")
    return EXPERIMENTS[name]
