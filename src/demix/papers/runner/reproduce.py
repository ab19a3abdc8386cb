"""Run the jobs of an experiment that are not finished yet."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix._support.files import claiming
from demix._support.locks import lock_folder
from demix._support.memory import check_memory
from demix._support.outputs import claim_folder
from demix._support.process_group.group import Ranks
from demix._support.validation import check_seed
from demix.papers.runner.experiment import Experiment, InputFiles, Row
from demix.papers.runner.job import Job, JobCallback, follow_jobs, open_inputs
from demix.papers.runner.progress import remove_boards
from demix.papers.runner.scales import Scale
from demix.papers.runner.store import FILE, Store
from demix.papers.runner.sweep import Sweep
from demix.papers.runner.table import TABLES, write_tables

# What the smallest job takes besides the weights: scores, and libraries that it is first to use.
_LIBRARIES = 150 << 20


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

    A figure of a paper is also drawn, as ``figure.svg`` and ``figure.png``. ``out`` is a new or
    empty folder, or that of an earlier run. Jobs whose records are there are not run again, and
    rows of one setting are run once; a record that was made from other data is refused.

    By default all ``rows`` are run. Each of the ``seeds`` draws its own mixing, weights and data.
    ``data`` are files or folders, for an experiment that needs some. ``executor`` is anything with
    the interface of Python's own ones, whose workers can write to ``out``; by default this process
    runs one job after the other, to the same records. ``callback`` is called with the progress.

    Ctrl-C keeps every finished job and raises ``KeyboardInterrupt``; unfinished jobs continue from
    their last checkpoint the next time, to the same bits. A job that fails does not keep the others
    from running. The ranks of an initialised process group train each job together, and end with
    one that fails; rank 0 alone decides, writes, and returns all records in ``out``.
    """
    chosen = _rows(experiment, rows)
    seeds = [check_seed(seed) for seed in dict.fromkeys(seeds)]
    callback = callback or JobCallback()
    inputs = open_inputs(experiment, InputFiles(data, scale, callback.read, verify=True))
    chosen = _runnable(experiment, chosen, inputs, every=rows is None)
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
    with lock_folder(folder), claiming(*(folder / name for name in (FILE, *TABLES))):
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
                sweep.run_here(todo, inputs)
            elif todo:
                del inputs  # workers open their own
                sweep.run_elsewhere(todo, executor)
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


def _runnable(experiment: Experiment, rows: list[Row], inputs: Any, *, every: bool) -> list[Row]:
    """Return the rows that can run on the inputs; a row that was asked for must be among them."""
    for row in rows:
        if not every and (lacking := row.lacks(inputs)):
            raise DemixError(
                f"Row {row.number} of {experiment.name} needs {lacking}, but --data does not hold "
                "it."
            )
    return [row for row in rows if row.lacks(inputs) is None]


def _rows(experiment: Experiment, numbers: Sequence[int] | None) -> list[Row]:
    by_number = {row.number: row for row in experiment.rows}
    unknown = [number for number in numbers or [] if number not in by_number]
    if unknown:
        raise DemixError(f"{experiment.name} has rows 1 to {len(by_number)}, but got {unknown[0]}.")
    return [by_number[n] for n in dict.fromkeys(by_number if numbers is None else numbers)]
