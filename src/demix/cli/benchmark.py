"""``demix bench``."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demix.bench.sizes import FULL, QUICK
from demix.bench.suite import SECTIONS, run_suite
from demix.bench.tables import BenchTable, tables_of
from demix.cli.console import console, title_column
from demix.files import write_atomic
from demix.outputs import claim_file

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


def run_bench(
    json_file: Path | None, *, quick: bool, sections: list[str] | None, overwrite: bool
) -> None:
    """Measure everything, print the tables and write the file."""
    if json_file is not None:
        mark = b'"command": "demix bench"'
        claim_file(json_file, "--json", suffix=".json", start=mark, overwrite=overwrite)
    terminal = console()
    progress = Progress(
        title_column(),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
        console=terminal,
        auto_refresh=False,
        transient=True,
    )
    try:
        with progress:
            data = run_suite(QUICK if quick else FULL, _Bar(progress), sections or SECTIONS)
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted; nothing was written.")
        raise typer.Exit(130) from None
    for table in tables_of(data).values():
        _print(terminal, table)
    if json_file is not None:
        write_atomic(json_file, json.dumps(data, indent=1) + "\n")
        typer.echo(f"Wrote {json_file}")


def _print(place: Console, table: BenchTable) -> None:
    shown = Table(*table.header, title=table.title)
    for row in table.rows:
        shown.add_row(*row)
    place.print(shown)
    for note in table.notes:
        place.print(f"- {note}")
