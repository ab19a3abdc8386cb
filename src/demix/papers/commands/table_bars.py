"""Progress bars for the jobs of a table."""

from collections.abc import Sequence
from typing import Any

from rich.progress import Progress, TaskID
from rich.text import Text

from demix._support.errors import DemixError
from demix.cli.console import print_warning
from demix.cli.progress import TrainingTask
from demix.papers.runner.experiment import Row
from demix.papers.runner.job import Job, JobCallback
from demix.papers.runner.score_rows import SCORES
from demix.training.loop import Record


class TableBars(JobCallback):
    """A bar for each running job of a table, a line when it is finished, and a bar for all."""

    def __init__(self, progress: Progress, score: str) -> None:
        self.progress, self.score = progress, score
        self.bars: dict[str, TrainingTask] = {}
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

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        """Say how much is to be done."""
        self.progress.console.print(f"{len(jobs)} jobs, {finished} of them finished already.")
        if len(jobs) > finished + 1:
            self.all = self.progress.add_task(
                "all jobs", total=len(jobs), completed=finished, numbers=""
            )

    def warn(self, row: Row, warning: str) -> None:
        """Say for which rows theory promises nothing."""
        print_warning(self.progress.console, f"row {row.number}: {warning}")

    def step(self, job: Job, step: int, steps: int, record: Record) -> None:
        """Move the job's bar."""
        title = str(job)
        if title not in self.bars:
            self.bars[title] = TrainingTask(self.progress, title, SCORES[self.score])
        self.bars[title].step(step, steps, record)

    def finish(self, job: Job, record: dict[str, Any]) -> None:
        """Replace the bar by a line with ours and the paper's score."""
        self._end(job)
        paper = record["paper_mean"]
        published = "" if paper is None else f" (paper {100 * paper:.2f})"
        value = record[self.score]
        ours = "not testable" if value is None else f"{100 * value:.2f}"
        self.progress.console.print(
            f"row {job.row.number:2d}  seed {job.seed}  {job.model:12s} "
            f"{SCORES[self.score]} {ours}{published}  {record['seconds']:.0f} s"
        )

    def fail(self, job: Job, error: DemixError) -> None:
        """Replace the bar by a line that says why."""
        self._end(job)
        line = Text.assemble(("failed", "red"), f"   {job}: {error}")
        self.progress.console.print(line, soft_wrap=True)

    def _end(self, job: Job) -> None:
        bar = self.bars.pop(str(job), None)
        if bar is not None:
            bar.remove()
        if self.all is not None:
            self.progress.advance(self.all)
            if self.progress.tasks[0].finished:
                self.progress.remove_task(self.all)
                self.all = None
        self.progress.refresh()
