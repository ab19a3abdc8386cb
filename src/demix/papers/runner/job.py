"""One job of a sweep: one row, one seed, one model, run in this or in another process."""

import math
import platform
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from demix._support.errors import DemixError, warn
from demix._support.process_group.group import Ranks
from demix._support.provenance import provenance
from demix.losses.streaming import kernel_name
from demix.papers.runner.experiment import Experiment, InputFiles, Row
from demix.papers.runner.run import Monitor, Run
from demix.papers.runner.scales import Scale
from demix.papers.workers.executors import threads
from demix.training.loop import Record

_ALONE = threading.Lock()  # Torch's random numbers and threads belong to the whole process
_OPENED: dict[str, Any] = {}
"""Opened inputs by sweep; those of one sweep at a time."""


@dataclass(frozen=True)
class Job:
    """One row, seed and model of an experiment at a scale; ``data`` is :meth:`Row.digest`."""

    experiment: Experiment
    row: Row
    seed: int
    scale: Scale
    model: str
    data: str | None = None

    def __str__(self) -> str:
        return f"row {self.row.number}, seed {self.seed}, {self.model}"

    @property
    def key(self) -> tuple[int, int, str]:
        """Row, seed and model: what distinguishes jobs of one folder."""
        return self.row.number, self.seed, self.model

    def heading(self) -> dict[str, Any]:
        """Return the part of a record that names the job."""
        mean, std = self.row.published(self.model, self.experiment.score) or (None, None)
        return {
            "experiment": self.experiment.name,
            "row": self.row.number,
            "seed": self.seed,
            "scale": self.scale.name,
            "model": self.model,
            "paper_mean": None if mean is None else round(mean / 100, 6),
            "paper_std": None if std is None else round(std / 100, 6),
        }

    def run(self, inputs: Any = None, monitor: Monitor | None = None) -> dict[str, Any] | None:
        """Run the row on all ranks; return its record without provenance, None if interrupted."""
        monitor, ranks = monitor or Monitor(), Ranks.current()
        if ranks.leads:
            ranks.broadcast((self, Monitor(about=monitor.about)))
        run = Run(self.seed, self.scale, self.model, self.experiment.score, inputs, monitor)
        measured = self.row.run(run)
        return None if measured is None else self.heading() | measured


def follow_jobs(inputs: Any) -> None:
    """Take part, on a rank other than 0, in the jobs that rank 0 runs, until it has no more."""
    while (following := Ranks.current().broadcast(None)) is not None:
        job, monitor = following
        job.run(inputs, monitor)


def open_inputs(experiment: Experiment, files: InputFiles) -> Any:
    """Return what the rows of an experiment need besides themselves; None if that is nothing."""
    if experiment.data is None and files.paths:
        raise DemixError(
            f"{experiment.name} makes its own data, but got {files.paths[0]}; leave --data out."
        )
    if experiment.data is not None and not files.paths:
        raise DemixError(f"{experiment.name} needs --data with {experiment.data}, but got none.")
    return experiment.kind.inputs(experiment, files)


class JobCallback:
    """What :func:`reproduce` calls while it runs; the command line draws bars with it."""

    def read(self, done: int, total: int, what: str) -> None:
        """Called with how much is read of the files that an experiment needs."""

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        """Called with all jobs, and how many of them are finished already."""

    def warn(self, row: Row, warning: str) -> None:
        """Called before anything starts, for each row for which theory promises nothing."""
        warn(f"Row {row.number}: {warning}")

    def step(self, job: Job, step: int, steps: int, record: Record) -> None:
        """Called with the progress of a job; several may be running."""

    def finish(self, job: Job, record: dict[str, Any]) -> None:
        """Called with the record of a finished job."""

    def fail(self, job: Job, error: DemixError) -> None:
        """Called with the error of a failed job."""


@dataclass(frozen=True)
class Task:
    """A job with all that it takes to run it in some other process: absolute paths, its own folder.

    ``sweep`` is a name of its own for each sweep. ``inputs`` are given where they are open.
    """

    job: Job
    data: tuple[Path, ...]
    folder: Path
    callback: Callable[[int, int, Record], None]
    sweep: str
    inputs: Any = None


def run_task(task: Task) -> dict[str, Any] | None:
    """Run a job from its checkpoint, and return its record; None if it was interrupted."""
    if not task.folder.is_dir():
        raise DemixError(
            f"{task.folder} is not there on {platform.node()}; a sweep needs a folder that all its "
            "workers can write to."
        )
    job = task.job
    about = {
        "experiment": job.experiment.name,
        "row": job.row.setting(),
        "scale": repr(job.scale),
        "model": job.model,
        "data": job.data,
    }
    monitor = Monitor(task.callback, task.folder / "checkpoint.safetensors", about)
    with _ALONE, threads(job.row.threads(job.scale)):
        record = job.run(_inputs(task), monitor)
        origin = _origin(torch.get_num_threads()) | ({"data": job.data} if job.data else {})
        return None if record is None else dict(finite(record | {"provenance": origin}))


def finite(value: Any) -> Any:
    """Return plain data with None in place of numbers that JSON lacks: scores of too few rows."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _inputs(task: Task) -> Any:
    if task.inputs is not None:
        return task.inputs
    if task.sweep not in _OPENED:
        _OPENED.clear()
        files = InputFiles(task.data, task.job.scale)
        _OPENED[task.sweep] = open_inputs(task.job.experiment, files)
    return _OPENED[task.sweep]


@lru_cache
def _origin(threads: int) -> dict[str, str | int]:
    return provenance() | {"kernel": kernel_name()}
