"""Progress bars for training and scoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from demix.cli.console import print_warning, title_column
from demix.errors import DemixError
from demix.experiments import Row
from demix.reproduce import SCORES, Cell, Watcher
from demix.training import Record

# What is done sooner shows no bar.
_SOON = 2.0
# A bar that is redrawn at every step would cost more than a small step.
_REDRAW = 0.2


def training_bar(console: Console) -> Progress:
    """Return a bar that shows loss, score, distance to the optimum and time left.

    On a narrow terminal the numbers take a second line: everything else keeps its width.
    """
    return Progress(
        title_column(),
        BarColumn(bar_width=12),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[numbers]}", table_column=Column(), markup=False),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=console,
        auto_refresh=False,
        # Cells of a table are finished minutes apart.
        speed_estimate_period=3600,
    )


@contextmanager
def counting_bar(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """Count what is done on a bar that appears after two seconds and goes away in the end."""
    progress = Progress(
        title_column(),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = progress.add_task("", total=None)
    begun = time.monotonic()

    def count(done: int, total: int, what: str) -> None:
        progress.update(task, completed=done, total=total, description=what)
        if time.monotonic() - begun > _SOON:
            progress.start()

    try:
        yield count
    finally:
        progress.stop()


def numbers(record: Record, score: str) -> str:
    """Write the latest record in a few words."""
    shown = []
    if record.get("loss") is not None:
        shown.append(f"loss {record['loss']:.3f}")
    if record.get("score") is not None:
        shown.append(f"{score} {record['score']:.2f} %")
    if record.get("nats_above_optimum") is not None:
        shown.append(f"optimum {record['nats_above_optimum']:+.3f}")
    return " · ".join(shown)


class Bar:
    """One training on a progress bar."""

    def __init__(self, progress: Progress, title: str, steps: int, score: str) -> None:
        self.progress, self.steps, self.score = progress, steps, score
        self.task: TaskID = progress.add_task(title, total=steps, numbers="")
        self.drawn = 0.0

    def step(self, step: int, record: Record) -> None:
        """Move to ``step``; draw only a few times a second."""
        if step == self.steps or time.monotonic() - self.drawn > _REDRAW:
            self.progress.update(self.task, completed=step, numbers=numbers(record, self.score))
            self.progress.refresh()
            self.drawn = time.monotonic()


class TableBars(Watcher):
    """A bar for each running cell of a table, a line when it is finished, and a bar for all."""

    def __init__(self, progress: Progress, score: str) -> None:
        self.progress, self.score = progress, score
        self.bars: dict[str, Bar] = {}
        self.all: TaskID | None = None
        self.reading: TaskID | None = None

    def read(self, done: int, total: int, what: str) -> None:
        """Show how much is read."""
        if self.reading is None:
            self.reading = self.progress.add_task("", numbers="")
        self.progress.update(self.reading, description=what, completed=done, total=total)
        if done == total:
            self.progress.remove_task(self.reading)
            self.reading = None
        self.progress.refresh()

    def plan(self, cells: Sequence[Cell]) -> None:
        """Say how much is to be done."""
        done = sum(cell.done for cell in cells)
        self.progress.console.print(f"{len(cells)} cells, {done} of them finished already.")
        if len(cells) > done + 1:
            self.all = self.progress.add_task(
                "all cells", total=len(cells), completed=done, numbers=""
            )

    def warn(self, row: Row, warning: str) -> None:
        """Say for which rows theory promises nothing."""
        print_warning(self.progress.console, f"row {row.number}: {warning}")

    def step(self, cell: Cell, step: int, steps: int, record: Record) -> None:
        """Move the cell's bar."""
        title = str(cell)
        if title not in self.bars:
            self.bars[title] = Bar(self.progress, title, steps, SCORES[self.score])
        self.bars[title].step(step, record)

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Replace the bar by a line with ours and the paper's score."""
        self._end(cell)
        paper = record["paper_mean"]
        beside = "" if paper is None else f" (paper {100 * paper:.2f})"
        value = record[self.score]
        told = "not testable" if value is None else f"{100 * value:.2f}"
        self.progress.console.print(
            f"row {cell.row.number:2d}  seed {cell.seed}  {cell.model:12s} "
            f"{SCORES[self.score]} {told}{beside}  {record['seconds']:.0f} s"
        )

    def fail(self, cell: Cell, error: DemixError) -> None:
        """Replace the bar by a line that says why."""
        self._end(cell)
        line = Text.assemble(("failed", "red"), f"   {cell}: {error}")
        self.progress.console.print(line, soft_wrap=True)

    def _end(self, cell: Cell) -> None:
        bar = self.bars.pop(str(cell), None)
        if bar is not None:
            self.progress.remove_task(bar.task)
        if self.all is not None:
            self.progress.advance(self.all)
            if self.progress.tasks[0].finished:
                self.progress.remove_task(self.all)
                self.all = None
        self.progress.refresh()
