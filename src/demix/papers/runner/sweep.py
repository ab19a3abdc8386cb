"""The cells of a run, behind whatever executor there is."""

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
from demix._support.workers.executors import SerialExecutor, completed
from demix.papers.runner.cell import heading
from demix.papers.runner.declaration import Experiment, Row
from demix.papers.runner.progress import Board
from demix.papers.runner.scales import Scale
from demix.papers.runner.store import Store
from demix.papers.runner.task import Task, handed_over, run_task
from demix.papers.runner.watcher import Cell, Watcher


@dataclass
class Sweep:
    """The run of some cells into a store.

    Attributes
    ----------
    experiment, scale, data
        What is run, and on which files.
    store : Store
        Where finished cells are kept.
    watcher : Watcher
        Is told on the way.
    name : str
        Different for each run.
    failed : list
        Cells that gave nothing, and why.
    """

    experiment: Experiment[Row]
    scale: Scale
    data: tuple[Path, ...]
    store: Store
    watcher: Watcher
    name: str = field(default_factory=lambda: uuid4().hex)
    failed: list[tuple[Cell, DemixError]] = field(default_factory=list)

    def run_here(self, cells: Sequence[Cell], material: Any) -> None:
        """Run cells in this process, on what was opened already."""
        with handed_over(self.name, material):
            self._run(cells, SerialExecutor(), None)

    def run_elsewhere(self, cells: Sequence[Cell], executor: Executor) -> None:
        """Let an executor run cells, which open the files themselves."""
        with closing(Board(self.store.unfinished, self.name)) as board:
            self._run(cells, executor, board)

    def _run(self, cells: Sequence[Cell], executor: Executor, board: Board | None) -> None:
        """Run cells, keep each as soon as it is finished, and copy it to rows of one setting."""
        first, copies = _distinct(self._copied(cells))
        running: dict[str, Cell] = {}

        def tasks() -> Iterator[Task]:
            for cell in first:
                folder = self.store.begin(cell.row.number, cell.seed, cell.model)
                running[folder.name] = cell
                tell = board.note(folder.name) if board else partial(self.watcher.step, cell)
                which = self.experiment, cell.row, cell.seed, self.scale, cell.model
                yield Task(*which, self.data, folder, tell, self.name)

        def look() -> None:
            for name, step, steps, record in board.read() if board else ():
                if name in running:
                    self.watcher.step(running[name], step, steps, record)

        with closing(completed(executor, run_task, tasks(), look)) as finished:
            for task, future in finished:
                cell = running.pop(task.folder.name)
                if board:
                    board.wipe(task.folder.name)
                try:
                    record = _result(future)
                except DemixError as error:
                    self.failed.append((cell, error))
                    self.watcher.fail(cell, error)
                    continue
                if record is None:
                    raise KeyboardInterrupt
                self._keep(cell, record)
                copies = self._copied(copies)

    def _keep(self, cell: Cell, record: dict[str, Any]) -> None:
        self.store.add(record)
        self.watcher.finish(cell, record)

    def _copied(self, cells: Sequence[Cell]) -> list[Cell]:
        """Copy what was run as a row of the same setting; return the other cells.

        Papers print one setting in several rows; the same seed would give the same bits again.
        """
        left = []
        for cell in cells:
            record = self._same_run(cell)
            if record is None:
                left.append(cell)
            else:
                self._keep(cell, record)
        return left

    def _same_run(self, cell: Cell) -> dict[str, Any] | None:
        """Return the record of a finished cell that differs in its number only, as this cell's."""
        for row in self.experiment.rows:
            if row.number != cell.row.number and row.setting() == cell.row.setting():
                record = self.store.get(row.number, cell.seed, cell.model)
                if record is not None:
                    named = heading(self.experiment, cell.row, cell.seed, self.scale, cell.model)
                    return record | named | {"same_run_as_row": row.number}
        return None


def _distinct(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Return one cell of each setting, seed and model, and the cells that repeat them."""
    seen: list[tuple[Row, int, str]] = []
    first: list[Cell] = []
    copies: list[Cell] = []
    for cell in cells:
        key = (cell.row.setting(), cell.seed, cell.model)
        (copies if key in seen else first).append(cell)
        seen.append(key)
    return first, copies


def _result(future: Future[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what a cell gave; where its worker was lost, a sentence says so."""
    try:
        return future.result()
    except Exception as error:
        lost = isinstance(error, BrokenExecutor | CancelledError)
        # Dask has many words for it.
        if lost or type(error).__module__.partition(".")[0] == "distributed":
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise DemixError(
                f"The executor gave the cell up ({reason}); run the same again to go on."
            ) from error
        raise
