"""``demix bench``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demix.bench.sizes import FULL, QUICK
from demix.bench.suite import SECTIONS, run_suite
from demix.bench.tables import BenchTable, tables_of
from demix.errors import DemixError
from demix.files import write_atomic

# Drawing must not become a part of what is measured.
_REDRAW = 0.2


class _Bar:
    """Sections on a progress bar, with what is measured right now."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=len(SECTIONS), what="")
        self.begun = 0
        self.drawn = 0.0

    def section(self, name: str) -> None:
        """Move on by one section."""
        self.progress.update(self.task, description=name, completed=self.begun, what="")
        self.begun += 1
        self.drawn = 0.0
        if not self.progress.console.is_terminal:  # a log file shows no bar
            self.progress.console.print(f"measuring: {name}")

    def say(self, what: str) -> None:
        """Show what is measured, a few times a second."""
        if time.monotonic() - self.drawn > _REDRAW:
            self.progress.update(self.task, what=what)
            self.progress.refresh()
            self.drawn = time.monotonic()


def run_bench(json_file: Path | None, *, quick: bool, sections: list[str] | None) -> None:
    """Measure everything, print the tables and write the file."""
    if json_file is not None:
        _check_writable(json_file)
    console = Console()
    progress = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
        console=console,
        auto_refresh=False,
        transient=True,
    )
    try:
        with progress:
            data = run_suite(QUICK if quick else FULL, _Bar(progress), sections or SECTIONS)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted; nothing was written.")
        raise typer.Exit(130) from None
    for table in tables_of(data).values():
        _print(console, table)
    if json_file is not None:
        write_atomic(json_file, json.dumps(data, indent=1) + "\n")
        typer.echo(f"Wrote {json_file}")


def _check_writable(file: Path) -> None:
    """Refuse before measuring what could not be written after it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemixError(f"--json must name a file that can be written: {error}.") from None
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise DemixError(f"--json must name a file that can be written, but got {file}.")


def _print(console: Console, table: BenchTable) -> None:
    shown = Table(*table.header, title=table.title)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
    for note in table.notes:
        console.print(f"- {note}", markup=False, highlight=False)
