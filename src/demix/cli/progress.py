"""Progress bars for training and scoring."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich import progress as bars
from rich.console import Console
from rich.table import Column

_SOON = 2.0  # seconds of work before a bar appears
_REDRAW = 0.2  # seconds between two drawings: one costs more than a small step


def title_column() -> bars.TextColumn:
    """Return the column with the description of a bar."""
    return bars.TextColumn("{task.description}", style="bold", markup=False)


def training_bar(console: Console) -> bars.Progress:
    """Return a bar that shows loss, score, distance to the optimum and time left."""
    return bars.Progress(
        title_column(),
        bars.BarColumn(bar_width=12),
        bars.MofNCompleteColumn(table_column=Column(no_wrap=True)),
        bars.TextColumn("{task.fields[numbers]}", table_column=Column(), markup=False),
        bars.TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=console,
        auto_refresh=False,
        speed_estimate_period=3600,  # jobs of a table finish minutes apart
    )


@contextmanager
def counting_bar(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a counter whose bar appears after two seconds and disappears at the end."""
    columns = title_column(), bars.BarColumn(bar_width=12), bars.MofNCompleteColumn()
    hidden = not console.is_terminal
    progress = bars.Progress(*columns, console=console, transient=True, disable=hidden)
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


class TrainingTask:
    """One training on a progress bar, which begins with its first step."""

    def __init__(self, progress: bars.Progress, title: str, score: str = "score") -> None:
        self.progress, self.title = progress, title
        self.forms = {"loss": "loss {:.3f}", "score": score + " {:.2f} %"}
        self.forms["nats_above_optimum"] = "optimum {:+.3f}"
        self.task: bars.TaskID | None = None
        self.about: str | None = None
        self.drawn = 0.0

    def step(self, step: int, steps: int, record: Mapping[str, float | None]) -> None:
        """Move to ``step``; draw only a few times a second."""
        if self.task is None:
            if self.about is not None:  # not before: what is refused leaves one sentence
                self.progress.console.print(self.about, soft_wrap=True)
            self.task = self.progress.add_task(self.title, total=steps, numbers="")
        if step == steps or time.monotonic() - self.drawn > _REDRAW:
            known = (x for x in self.forms if record.get(x) is not None)
            words = " · ".join(self.forms[x].format(record[x]) for x in known)
            self.progress.update(self.task, completed=step, total=steps, numbers=words)
            self.progress.refresh()
            self.drawn = time.monotonic()

    def remove(self) -> None:
        """Take the bar away."""
        if self.task is not None:
            self.progress.remove_task(self.task)
