"""The jobs of one call of `reproduce`, run by any executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from demix._support.errors import DemixError
from demix._support.process_group.group import Ranks
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.job import Job, JobCallback, Task, run_task
from demix.papers.runner.progress import Board
from demix.papers.runner.store import Store, data_of
from demix.papers.workers.executors import SerialExecutor, completed


@dataclass
class Sweep:
    """Jobs on some files, whose records go into a store; ``failed`` lists those that failed."""

    experiment: Experiment
    data: tuple[Path, ...]
    store: Store
    callback: JobCallback
    name: str = field(default_factory=lambda: uuid4().hex)
    failed: list[tuple[Job, DemixError]] = field(default_factory=list)

    def run_here(self, jobs: Sequence[Job], inputs: Any) -> None:
        """Run jobs in this process, on what was opened already."""
        self._run(jobs, SerialExecutor(), inputs=inputs)

    def run_elsewhere(self, jobs: Sequence[Job], executor: Executor) -> None:
        """Let an executor run jobs, which open the files themselves."""
        with closing(Board(self.store.unfinished, self.name)) as board:
            self._run(jobs, executor, board=board)

    def _run(
        self,
        jobs: Sequence[Job],
        executor: Executor,
        *,
        board: Board | None = None,
        inputs: Any = None,
    ) -> None:
        """Run jobs, keep each as soon as it is finished, and copy it to rows of one setting."""
        first, copies = _distinct(self._copied(jobs))
        running: dict[str, Job] = {}

        def tasks() -> Iterator[Task]:
            for job in first:
                folder = self.store.begin(*job.key)
                running[folder.name] = job
                step = board.note(folder.name) if board else partial(self.callback.step, job)
                yield Task(job, self.data, folder, step, self.name, inputs)

        def read_notes() -> None:
            for name, step, steps, record in board.read() if board else ():
                if name in running:
                    self.callback.step(running[name], step, steps, record)

        with closing(completed(executor, run_task, tasks(), read_notes)) as finished:
            for task, future in finished:
                job = running.pop(task.folder.name)
                if board:
                    board.wipe(task.folder.name)
                try:
                    record = _result(future)
                except DemixError as error:
                    if Ranks.current().count > 1:
                        raise  # the other ranks are in the middle of this job
                    self.failed.append((job, error))
                    self.callback.fail(job, error)
                    continue
                if record is None:
                    raise KeyboardInterrupt
                self._keep(job, record)
                copies = self._copied(copies)

    def _keep(self, job: Job, record: dict[str, Any]) -> None:
        self.store.add(record)
        self.callback.finish(job, record)

    def _copied(self, jobs: Sequence[Job]) -> list[Job]:
        """Copy what was run as a row of the same setting; return the other jobs.

        Papers print one setting in several rows; the same seed would give the same bits again.
        """
        left = []
        for job in jobs:
            record = self._same_run(job)
            if record is None:
                left.append(job)
            else:
                self._keep(job, record)
        return left

    def _same_run(self, job: Job) -> dict[str, Any] | None:
        """Return the record of a finished job of the same setting, as that of this job."""
        for row in self.experiment.rows:
            if row.number != job.row.number and row.setting() == job.row.setting():
                record = self.store.get(row.number, job.seed, job.model)
                if record is not None and data_of(record) == job.data:
                    return record | job.heading() | {"same_run_as_row": row.number}
        return None


def _distinct(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Return one job of each setting, seed and model, and the jobs that repeat them."""
    first: dict[tuple[str, int, str], Job] = {}
    for job in jobs:
        first.setdefault((job.row.setting(), job.seed, job.model), job)
    kept = {job.key for job in first.values()}
    return list(first.values()), [job for job in jobs if job.key not in kept]


def _result(future: Future[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the record of a job; if its worker was lost, raise a sentence that says so."""
    try:
        return future.result()
    except Exception as error:
        lost = isinstance(error, BrokenExecutor | CancelledError)
        # Dask has many words for it.
        if lost or type(error).__module__.partition(".")[0] == "distributed":
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise DemixError(
                f"The executor gave the job up ({reason}); run the same again to continue."
            ) from error
        raise
