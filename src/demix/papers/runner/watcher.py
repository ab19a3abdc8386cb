"""What a run tells of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demix._support.errors import DemixError, warn
from demix.papers.runner.declaration import Model, Row
from demix.training.loop import Record


@dataclass(frozen=True)
class Cell:
    """What :func:`reproduce` is about to run, or found finished."""

    row: Row
    seed: int
    model: Model
    done: bool

    def __str__(self) -> str:
        return f"row {self.row.number}, seed {self.seed}, {self.model}"


class Watcher:
    """What :func:`reproduce` tells on the way; the command line draws bars with it."""

    def read(self, done: int, total: int, what: str) -> None:
        """Learn how much is read of the files that an experiment needs."""

    def plan(self, cells: Sequence[Cell]) -> None:
        """Learn which cells there are."""

    def warn(self, row: Row, warning: str) -> None:
        """Learn, before anything starts, for which rows theory promises nothing."""
        warn(f"Row {row.number}: {warning}")

    def step(self, cell: Cell, step: int, steps: int, record: Record) -> None:
        """Learn how a cell is going; several may be running."""

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Learn what a cell gave."""

    def fail(self, cell: Cell, error: DemixError) -> None:
        """Learn why a cell gave nothing."""
