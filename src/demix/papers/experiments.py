"""The papers' tables and figures, by name."""

from demix._support.errors import DemixError
from demix.papers.reizinger2024 import tables as reizinger2024
from demix.papers.runner.experiment import Experiment
from demix.papers.zimmermann2021 import tables as zimmermann2021

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (*zimmermann2021.EXPERIMENTS, *reizinger2024.EXPERIMENTS)
}


def experiment_named(name: str) -> Experiment:
    """Return the experiment called ``name``."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise DemixError(f"Unknown experiment {name!r}; known are {known}.")
    return EXPERIMENTS[name]
