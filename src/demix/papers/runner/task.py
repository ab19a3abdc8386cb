"""A cell as a task: with everything that it takes to run it in some other process."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix._support.provenance import provenance
from demix._support.workers.environment import threads
from demix.losses.streaming import kernel_name
from demix.papers.runner.cell import run_cell
from demix.papers.runner.declaration import Experiment, Model, Row
from demix.papers.runner.material import open_material
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import Report
from demix.training.loop import Record

# Torch's random numbers and threads belong to the whole process.
_ALONE = threading.Lock()
_OPENED: dict[str, Any] = {}
"""What was opened, by sweep; that of one sweep at a time."""


@dataclass(frozen=True)
class Task:
    """A cell of a sweep.

    Attributes
    ----------
    experiment, row, seed, scale, model
        Which cell.
    data : tuple of Path
        Absolute paths of the files that the experiment needs.
    folder : Path
        For what is kept of the cell until it is finished; it is there already.
    tell : callable
        ``tell(step, steps, record)`` after every step.
    sweep : str
        Name of the run, different for each.
    """

    experiment: Experiment[Row]
    row: Row
    seed: int
    scale: Scale
    model: Model
    data: tuple[Path, ...]
    folder: Path
    tell: Callable[[int, int, Record], None]
    sweep: str


def run_task(task: Task) -> dict[str, Any] | None:
    """Run a cell in this process, from where it stopped if it was begun before.

    Returns
    -------
    dict or None
        The record of ``results.json``; None if the cell was interrupted.
    """
    if not task.folder.is_dir():
        raise DemixError(
            f"{task.folder} is not there on {platform.node()}; a sweep needs a folder that all its "
            "workers can write to."
        )
    about = {
        "experiment": task.experiment.name,
        "row": repr(task.row.setting()),
        "scale": repr(task.scale),
        "model": task.model,
        "data": [str(path) for path in task.data],
    }
    report = Report(task.tell, task.folder / "checkpoint.safetensors", about)
    with _ALONE, threads(task.row.threads(task.scale)):
        record = run_cell(
            task.experiment,
            task.row,
            task.seed,
            task.scale,
            task.model,
            report,
            material=_material(task),
        )
        return None if record is None else record | {"provenance": _origin()}


@contextmanager
def handed_over(sweep: str, material: Any) -> Iterator[None]:
    """Let the tasks of a sweep in this process use what was opened already."""
    _OPENED[sweep] = material
    try:
        yield
    finally:
        _OPENED.clear()


def _material(task: Task) -> Any:
    if task.sweep not in _OPENED:
        _OPENED.clear()
        _OPENED[task.sweep] = open_material(task.experiment, task.data, task.scale)
    return _OPENED[task.sweep]


def _origin() -> dict[str, str | int]:
    import torch

    return _origin_on(torch.get_num_threads())


@lru_cache
def _origin_on(threads: int) -> dict[str, str | int]:
    return provenance() | {"kernel": kernel_name()}
