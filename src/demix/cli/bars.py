"""Progress bars for training and scoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

from demix.cli.console import title_column
from demix.training.loop import Record

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
