"""``python -m benchmarks``: measure everything, beside the bars it must pass."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.sizes import FULL, QUICK
from benchmarks.suite import SECTIONS, run_suite
from benchmarks.tables import BenchTable, tables_of
from demix._support.files import write_atomic
from demix._support.outputs import claim_file
from demix.cli import run
from demix.cli.console import console
from demix.cli.options import Overwrite
from demix.cli.progress import title_column

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


def bench(
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write to.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see it work; no bar is judged.")
    ] = False,
    sections: Annotated[
        str | None, typer.Option(help="Only some sections, e.g. contrast,step or estimators.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure losses, steps, samplers, scores and estimators beside their peers.

    Everything is timed side by side in one run, beside the bars it must pass. In full this takes
    about a quarter of an hour on two cores, which should have nothing else to do.
    """
    chosen = SECTIONS if sections is None else sections.split(",")
    mark = rb'{.*"provenance": {\n  "command": "python -m benchmarks"'
    claim = partial(claim_file, suffix=".json", start=mark, overwrite=overwrite)
    if json_file is not None:
        with claim(json_file, "--json"):
            pass  # refused now, not when all is measured
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
            data = run_suite(QUICK if quick else FULL, _Bar(progress), chosen)
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted; nothing was written.")
        raise typer.Exit(130) from None
    for table in tables_of(data).values():
        _print(terminal, table)
    if json_file is not None:
        with claim(json_file, "--json"):
            write_atomic(json_file, json.dumps(data, indent=1) + "\n")
        typer.echo(f"Wrote {json_file}")


def _print(place: Console, table: BenchTable) -> None:
    shown = Table(*table.header, title=table.title)
    for row in table.rows:
        shown.add_row(*row)
    place.print(shown)
    for note in table.notes:
        place.print(f"- {note}")


if __name__ == "__main__":
    run(partial(typer.run, bench))
