"""Run the jobs of an experiment that are not finished yet, by any executor; write its tables."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from demix._support.errors import DemixError, reason
from demix._support.files import claiming, write_atomic
from demix._support.locks import lock_folder
from demix._support.memory import check_memory
from demix._support.outputs import PAGE, claim_folder, refuse_other
from demix._support.process_group.group import Ranks
from demix._support.validation import check_seed
from demix.papers.pages.table import table_markdown, table_page
from demix.papers.runner.experiment import Experiment, InputFiles, Records, Row
from demix.papers.runner.job import Job, JobCallback, Task, follow_jobs, open_inputs, run_task
from demix.papers.runner.scales import Scale
from demix.papers.runner.store import FILE, Board, Store, data_of, remove_boards
from demix.papers.workers.executors import SerialExecutor, completed
from demix.report.blocks import write_page
from demix.report.static import FIGURE_MARKS

# What the smallest job takes besides the weights: scores, and libraries that it is first to use.
_LIBRARIES = 150 << 20
_TABLES = ("table.md", "table.html", "figure.svg", "figure.png")


def reproduce(
    experiment: Experiment,
    out: str | Path,
    *,
    rows: Sequence[int] | None = None,
    seeds: Sequence[int] = (0,),
    scale: Scale,
    data: Sequence[str | Path] = (),
    executor: Executor | None = None,
    callback: JobCallback | None = None,
) -> list[dict[str, Any]]:
    """Run an experiment into ``out``: ``results.json``, ``table.md``, ``table.html``.

    A figure of a paper is also drawn. ``out`` is a new or empty folder, or that of an earlier run,
    whose records are kept unless they were made from other data, which is refused. Rows of one
    setting are run once. ``executor`` is anything with the interface of Python's own ones, whose
    workers can write to ``out``; by default this process runs all jobs, to the same records.

    Ctrl-C keeps every finished job; unfinished ones continue from their last checkpoint, to the
    same bits. A job that fails does not keep the others from running. The ranks of a process group
    train each job together, and end with one that fails; rank 0 alone decides, writes, and returns
    all records in ``out``.
    """
    chosen = _rows(experiment, rows)
    seeds = [check_seed(seed) for seed in dict.fromkeys(seeds)]
    callback = callback or JobCallback()
    inputs = open_inputs(experiment, InputFiles(data, scale, callback.read, verify=True))
    for row in chosen:
        if rows is not None and (lacking := row.lacks(inputs)):
            raise DemixError(
                f"Row {row.number} of {experiment.name} needs {lacking}, but --data does not hold "
                "it."
            )
    chosen = [row for row in chosen if row.lacks(inputs) is None]
    ranks = Ranks.current()
    if executor is not None and ranks.count > 1:
        raise DemixError(
            f"{ranks.count} ranks train each job together; leave the executor out, or torchrun."
        )
    if not ranks.leads:
        follow_jobs(inputs)
        return []
    # Some libraries end the process if there is nothing left for their own buffers.
    check_memory(_LIBRARIES, "Running jobs", "free some, or raise the limit")
    folder = claim_folder(out, FILE)
    with lock_folder(folder), claiming(*(folder / name for name in (FILE, *_TABLES))):
        # Not before: another run may add records until it gives the lock up.
        store = Store(out, experiment, scale)
        digests = {row.number: row.digest(inputs) for row in chosen}
        store.check_data(digests)
        sweep = Sweep(experiment, tuple(Path(p).resolve() for p in data), store, callback)
        # Refuses now, not when all jobs have run, what others may have written there.
        write_tables(experiment, store.records, store.folder)
        jobs = [
            Job(experiment, row, seed, scale, model, digests[row.number])
            for row in chosen
            for seed in seeds
            for model in row.available(inputs)
        ]
        todo = [job for job in jobs if store.get(*job.key) is None]
        callback.plan(jobs, len(jobs) - len(todo))
        ahead = {(j.row.number, w): j.row for j in todo for w in j.row.warnings(scale, j.seed)}
        for (_, text), row in ahead.items():  # once for each row
            callback.warn(row, text)
        remove_boards(store.unfinished)
        try:
            if todo:
                inputs, sweep.data = experiment.kind.prepare(
                    inputs, sweep.data, store.folder, callback.read
                )
            if executor is None:
                sweep.run(todo, SerialExecutor(), inputs=inputs)
            elif todo:
                del inputs  # workers open their own
                with closing(Board(store.unfinished, sweep.name)) as board:
                    sweep.run(todo, executor, board=board)
        except KeyboardInterrupt:
            write_tables(experiment, store.records, store.folder)
            raise
        ranks.broadcast(None)  # ends the loop of the ranks that follow
        write_tables(experiment, store.records, store.folder)
    if sweep.failed:
        job, error = sweep.failed[0]
        more = len(sweep.failed) - 1
        others = f" So did {more} more." if more else ""
        raise DemixError(f"{str(job).capitalize()} failed: {error}{others}") from error
    return store.records


def _rows(experiment: Experiment, numbers: Sequence[int] | None) -> list[Row]:
    by_number = {row.number: row for row in experiment.rows}
    unknown = [number for number in numbers or [] if number not in by_number]
    if unknown:
        raise DemixError(f"{experiment.name} has rows 1 to {len(by_number)}, but got {unknown[0]}.")
    return [by_number[n] for n in dict.fromkeys(by_number if numbers is None else numbers)]


@dataclass
class Sweep:
    """Jobs on some files, whose records go into a store; ``failed`` lists those that failed."""

    experiment: Experiment
    data: tuple[Path, ...]
    store: Store
    callback: JobCallback
    name: str = field(default_factory=lambda: uuid4().hex)
    failed: list[tuple[Job, DemixError]] = field(default_factory=list)

    def run(
        self,
        jobs: Sequence[Job],
        executor: Executor,
        *,
        board: Board | None = None,
        inputs: Any = None,
    ) -> None:
        """Run jobs, keep each as soon as it is finished, and copy it to rows of one setting.

        Jobs of other processes report on a board, and open the inputs themselves.
        """
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
        """Copy what was run as a row of the same setting, to the same bits; return other jobs."""
        left = []
        for job in jobs:
            if (record := self._same_run(job)) is None:
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
            why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise DemixError(
                f"The executor gave the job up ({why}); run the same again to continue."
            ) from error
        raise


def write_tables(experiment: Experiment, records: Records, folder: Path) -> None:
    """Write ``table.md``, ``table.html`` and, for a figure, its files into ``folder``.

    Files of others in their places, which may have come while jobs ran, are refused.
    """
    refuse_other(folder / "table.html", PAGE)
    title = re.escape(experiment.title)
    refuse_other(folder / "table.md", rf"# {title} \([^\n]+ scale\)\n\n\| ".encode())
    for name, mark in FIGURE_MARKS.items():
        refuse_other(folder / name, mark)
    try:
        if records:
            _write(experiment, records, folder)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, DemixError):
            raise
        raise DemixError(
            f"The results in {folder} make no table ({type(error).__name__}: {reason(error)}); "
            "choose another folder."
        ) from error


def _write(experiment: Experiment, records: Records, folder: Path) -> None:
    title = f"{experiment.title} ({records[0]['scale']} scale)"
    results = experiment.results(records)
    header, lines = experiment.kind.table(experiment, results)
    notes = [*_notes(experiment, records), *experiment.kind.notes(results)]
    write_atomic(folder / "table.md", table_markdown(title, header, lines, notes))
    published = " next to the published ones" if "(paper)" in " ".join(header) else ""
    page = table_page(
        title,
        f"{experiment.source}. Held-out scores{published}.",
        header,
        lines,
        experiment.kind.figure(experiment, results, folder),
        notes,
        records[0]["provenance"],
    )
    write_page(page, folder / "table.html")


def _notes(experiment: Experiment, records: Records) -> list[str]:
    seeds = sorted({record["seed"] for record in records})
    scale = records[0]["scale"]
    origins = [record["provenance"] for record in records]
    commits = sorted({origin.get("commit", "unknown")[:12] for origin in origins})
    cores = "/".join(sorted({str(origin["cores"]) for origin in origins}))
    run = [record for record in records if "same_run_as_row" not in record]
    minutes = sum(record["seconds"] for record in run) / 60
    command = f"demix reproduce {experiment.name} --seeds {','.join(map(str, seeds))} "
    rows = sorted({record["row"] for record in records})
    if len(rows) < len(experiment.rows):
        command += f"--rows {','.join(map(str, rows))} "
    files = " --data FILE --data FILE ..." if experiment.data else ""
    varying = experiment.varying()
    common = {
        name: text
        for name, text in experiment.rows[0].columns().items()
        if name not in varying and text != "–"
    }
    return [
        f"Regenerate with `{command}--scale {scale}{files} --out DIR`.",
        f"Seeds {', '.join(map(str, seeds))}; {minutes:.0f} minutes of {experiment.kind.work} "
        f"{cores} cores; commit {', '.join(commits)}.",
        *(["Smoke scale shrinks dimensions, clusters and data."] if scale == "smoke" else []),
        *([f"In all rows: {', '.join(f'{k} {v}' for k, v in common.items())}."] if common else []),
        *experiment.notes,
    ]
