"""The data sets: small scripts, none of which downloads anything."""

from __future__ import annotations

from benchmarks.real.sets import control, digits, measured, molecules, systems
from benchmarks.real.task import Dataset

SETS: dict[str, Dataset] = {
    dataset.name: dataset
    for module in (molecules, control, systems, measured, digits)
    for dataset in module.SETS
}
"""What the table shows."""

TUNED_ON: dict[str, Dataset] = {
    dataset.name: dataset for module in (molecules, control, systems) for dataset in module.OTHERS
}
"""What settings of peers were chosen on."""
