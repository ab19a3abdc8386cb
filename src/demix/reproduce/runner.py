"""Run the cells of an experiment that are not finished yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from demix.errors import DemixError, warn
from demix.experiments import Experiment, Model, Row, Scale
from demix.objectives import kernel_name
from demix.provenance import provenance
from demix.reproduce.cell import heading, run_cell
from demix.reproduce.material import models_of, open_material
from demix.reproduce.store import Store
from demix.reproduce.table import write_tables
from demix.training import Record
from demix.validation import check_seed


@dataclass(frozen=True)
class Cell:
    """What :func:`reproduce` is about to run, or found finished."""

    row: Row
    seed: int
    model: Model
    done: bool


class Watcher:
    """What :func:`reproduce` tells on the way; the command line draws bars with it."""

    def plan(self, cells: Sequence[Cell]) -> None:
        """Learn which cells there are."""

    def warn(self, row: Row, warning: str) -> None:
        """Learn, before anything starts, for which rows theory promises nothing."""
        warn(f"Row {row.number}: {warning}")

    def step(self, cell: Cell, step: int, steps: int, record: Record) -> None:
        """Learn how a cell is going."""

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Learn what a cell gave."""


def reproduce(
    experiment: Experiment[Row],
    out: str | Path,
    *,
    rows: Sequence[int] | None = None,
    seeds: Sequence[int] = (0,),
    scale: Scale,
    data: Sequence[str | Path] = (),
    watcher: Watcher | None = None,
) -> list[dict[str, Any]]:
    """Run an experiment into ``out``: ``results.json``, ``table.md``, ``table.html``.

    A figure of a paper is also drawn, as ``figure.svg`` and ``figure.png``.

    Cells found in ``out`` are not run again, and rows of one setting are run once. Ctrl-C keeps
    every finished cell and raises ``KeyboardInterrupt``.

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
    watcher : Watcher, optional
        Is told on the way.

    Returns
    -------
    list of dict
        All records in ``out``.
    """
    chosen = _rows(experiment, rows)
    seeds = [check_seed(seed) for seed in dict.fromkeys(seeds)]
    material = open_material(experiment, data, Path(out), scale)
    store = Store(out, experiment, scale)
    watcher = watcher or Watcher()
    cells = [
        Cell(row, seed, model, store.has(row.number, seed, model))
        for row in chosen
        for seed in seeds
        for model in models_of(row, material)
    ]
    watcher.plan(cells)
    ahead = {
        (cell.row.number, text): cell.row
        for cell in cells
        if not cell.done
        for text in cell.row.warnings(scale, cell.seed)
    }
    for (_, text), row in ahead.items():
        watcher.warn(row, text)
    origin = provenance() | {"kernel": kernel_name()}
    for cell in cells:
        if cell.done:
            continue
        record = _same_run(experiment, cell, scale, store)
        if record is None:
            record = run_cell(
                experiment,
                cell.row,
                cell.seed,
                scale,
                cell.model,
                partial(watcher.step, cell),
                material=material,
            )
            if record is None:
                write_tables(experiment, store.records, store.folder)
                raise KeyboardInterrupt
            record["provenance"] = origin
        store.add(record)
        watcher.finish(cell, record)
    write_tables(experiment, store.records, store.folder)
    return store.records


def _same_run(
    experiment: Experiment[Row], cell: Cell, scale: Scale, store: Store
) -> dict[str, Any] | None:
    """Return the record of a finished cell that differs in its number only, as this cell's.

    Papers print one setting in several rows; the same seed would give the same bits again.
    """
    for row in experiment.rows:
        if row.number != cell.row.number and row.setting() == cell.row.setting():
            record = store.get(row.number, cell.seed, cell.model)
            if record is not None:
                named = heading(experiment, cell.row, cell.seed, scale, cell.model)
                return record | named | {"same_run_as_row": row.number}
    return None


def _rows(experiment: Experiment[Row], numbers: Sequence[int] | None) -> list[Row]:
    by_number: dict[int, Row] = {row.number: row for row in experiment.rows}
    unknown = [number for number in numbers or [] if number not in by_number]
    if unknown:
        raise DemixError(f"{experiment.name} has rows 1 to {len(by_number)}, but got {unknown[0]}.")
    return (
        list(experiment.rows) if numbers is None else [by_number[n] for n in dict.fromkeys(numbers)]
    )
