"""Progress bars for training and scoring."""

import time
from collections.abc import Callable, Iterator, Mapping
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

# Seconds of work before a bar appears.
_SOON = 2.0
# Seconds between two drawings: drawing at every step would cost more than a small step.
_REDRAW = 0.2


def title_column() -> TextColumn:
    """Return the column with the description of a bar."""
    return TextColumn("{task.description}", style="bold", markup=False)


def training_bar(console: Console) -> Progress:
    """Return a bar that shows loss, score, distance to the optimum and time left."""
    return Progress(
        title_column(),
        BarColumn(bar_width=12),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[numbers]}", table_column=Column(), markup=False),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=console,
        auto_refresh=False,
        # Jobs of a table finish minutes apart.
        speed_estimate_period=3600,
    )


@contextmanager
def counting_bar(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a counter whose bar appears after two seconds and disappears at the end."""
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


def numbers_of(record: Mapping[str, float | None], score: str) -> str:
    """Write the latest record in a few words."""
    forms = {"loss": "loss {:.3f}", "score": score + " {:.2f} %"}
    forms["nats_above_optimum"] = "optimum {:+.3f}"
    return " · ".join(
        form.format(record[key]) for key, form in forms.items() if record.get(key) is not None
    )


class TrainingTask:
    """One training on a progress bar, which begins with its first step."""

    def __init__(self, progress: Progress, title: str, score: str = "score") -> None:
        self.progress, self.title, self.score = progress, title, score
        self.task: TaskID | None = None
        self.about: str | None = None
        self.drawn = 0.0

    def step(self, step: int, steps: int, record: Mapping[str, float | None]) -> None:
        """Move to ``step``; draw only a few times a second."""
        if self.task is None:
            if self.about is not None:  # not before: what is refused leaves one sentence
                self.progress.console.print(self.about, soft_wrap=True)
            self.task = self.progress.add_task(self.title, total=steps, numbers="")
        if step == steps or time.monotonic() - self.drawn > _REDRAW:
            words = numbers_of(record, self.score)
            self.progress.update(self.task, completed=step, numbers=words)
            self.progress.refresh()
            self.drawn = time.monotonic()

    def remove(self) -> None:
        """Take the bar away."""
        if self.task is not None:
            self.progress.remove_task(self.task)
