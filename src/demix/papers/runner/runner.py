"""Run the cells of an experiment that are not finished yet."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix._support.locks import lock_folder
from demix._support.memory import check_memory
from demix._support.process_group.group import Ranks
from demix._support.validation import check_seed
from demix.papers.runner.cell import follow_cells
from demix.papers.runner.declaration import Experiment, Row
from demix.papers.runner.material import models_of, open_material, prepared
from demix.papers.runner.progress import remove_boards
from demix.papers.runner.scales import Scale
from demix.papers.runner.store import Store
from demix.papers.runner.sweep import Sweep
from demix.papers.runner.table import write_tables
from demix.papers.runner.watcher import Cell, Watcher

# What the smallest cell takes beside the weights: scores, and libraries that it is first to use.
_LIBRARIES = 150 << 20


def reproduce(
    experiment: Experiment[Row],
    out: str | Path,
    *,
    rows: Sequence[int] | None = None,
    seeds: Sequence[int] = (0,),
    scale: Scale,
    data: Sequence[str | Path] = (),
    executor: Executor | None = None,
    watcher: Watcher | None = None,
) -> list[dict[str, Any]]:
    """Run an experiment into ``out``: ``results.json``, ``table.md``, ``table.html``.

    A figure of a paper is also drawn, as ``figure.svg`` and ``figure.png``.

    Cells found in ``out`` are not run again, and rows of one setting are run once. Ctrl-C keeps
    every finished cell and raises ``KeyboardInterrupt``; what was running goes on from its last
    look the next time, to the same bits. A cell that fails does not keep the others from running.
    The ranks of an initialised process group train each cell together; rank 0 alone decides and
    writes.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    out : path
        A new or empty folder, or that of an earlier run.
    rows : sequence of int, optional
        Row numbers, counted from 1; by default all.
    seeds : sequence of int
        Each seed draws its own mixing, weights and data.
    scale : Scale
        How large.
    data : sequence of paths
        Files or folders, for an experiment that needs some.
    executor : concurrent.futures.Executor, optional
        Who runs the cells: anything with the interface of Python's own executors, whose workers
        can write to ``out``. By default this process, one cell after the other. The records are
        the same.
    watcher : Watcher, optional
        Is told on the way.

    Returns
    -------
    list of dict
        All records in ``out``; none on other ranks than 0.
    """
    chosen = _rows(experiment, rows)
    seeds = [check_seed(seed) for seed in dict.fromkeys(seeds)]
    watcher = watcher or Watcher()
    material = open_material(experiment, data, scale, watcher.read, verify=True)
    chosen = _served(experiment, chosen, material, every=rows is None)
    ranks = Ranks.current()
    if executor is not None and ranks.count > 1:
        raise DemixError(
            f"{ranks.count} ranks train each cell together; leave the executor out, or torchrun."
        )
    if not ranks.leads:
        follow_cells(material)
        return []
    # Some libraries end the process if there is nothing left for their own buffers.
    check_memory(_LIBRARIES, "Running cells", "free some, or raise the limit")
    store = Store(out, experiment, scale)
    sweep = Sweep(experiment, scale, tuple(Path(p).resolve() for p in data), store, watcher)
    with lock_folder(store.folder):
        # What others may have written there is found out now, not when all cells have run.
        write_tables(experiment, store.records, store.folder)
        cells = [
            Cell(row, seed, model, store.has(row.number, seed, model))
            for row in chosen
            for seed in seeds
            for model in models_of(row, material)
        ]
        watcher.plan(cells)
        todo = [cell for cell in cells if not cell.done]
        _warn(todo, scale, watcher)
        remove_boards(store.unfinished)
        try:
            if todo:
                material, sweep.data = prepared(material, sweep.data, store.folder, watcher.read)
            if executor is None:
                sweep.run_here(todo, material)
            elif todo:
                del material  # workers open their own
                sweep.run_elsewhere(todo, executor)
        except KeyboardInterrupt:
            write_tables(experiment, store.records, store.folder)
            raise
        ranks.broadcast(None)  # which lets them go
        write_tables(experiment, store.records, store.folder)
    if sweep.failed:
        cell, error = sweep.failed[0]
        more = len(sweep.failed) - 1
        others = f" So did {more} more." if more else ""
        raise DemixError(f"{str(cell).capitalize()} failed: {error}{others}") from error
    return store.records


def _warn(cells: Sequence[Cell], scale: Scale, watcher: Watcher) -> None:
    """Say once for each row what theory forbids."""
    ahead = {(c.row.number, text): c.row for c in cells for text in c.row.warnings(scale, c.seed)}
    for (_, text), row in ahead.items():
        watcher.warn(row, text)


def _served(
    experiment: Experiment[Row], rows: list[Row], material: Any, *, every: bool
) -> list[Row]:
    """Return the rows that the files serve; a row that was asked for must be among them."""
    for row in rows:
        if not every and (lacking := row.lacks(material)):
            raise DemixError(
                f"Row {row.number} of {experiment.name} needs {lacking}, but --data does not hold "
                "it."
            )
    return [row for row in rows if row.lacks(material) is None]


def _rows(experiment: Experiment[Row], numbers: Sequence[int] | None) -> list[Row]:
    by_number: dict[int, Row] = {row.number: row for row in experiment.rows}
    unknown = [number for number in numbers or [] if number not in by_number]
    if unknown:
        raise DemixError(f"{experiment.name} has rows 1 to {len(by_number)}, but got {unknown[0]}.")
    return (
        list(experiment.rows) if numbers is None else [by_number[n] for n in dict.fromkeys(numbers)]
    )
