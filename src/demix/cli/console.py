"""The terminal: text is printed as it is, whatever a path or a name in it looks like."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table
from rich.text import Text


def console(*, errors: bool = False, **settings: Any) -> Console:
    """Return a console without markup: ``[/red]`` and ``:warning:`` may be names of files."""
    return Console(stderr=errors, markup=False, emoji=False, highlight=False, **settings)


def title_column() -> TextColumn:
    """Return the column of a bar that says what is done."""
    return TextColumn("{task.description}", style="bold", markup=False)


def print_warning(place: Console, sentence: str) -> None:
    """Print a warning on a line of its own, which is not broken in the middle of a path."""
    place.print(Text.assemble(("warning", "yellow"), f"  {sentence}"), soft_wrap=True)


def print_error(sentence: str) -> None:
    """Print why a command ends; where even that cannot be written, it ends all the same."""
    with suppress(OSError):
        text = Text.assemble(("Error:", "bold red"), f" {sentence}")
        console(errors=True).print(text, soft_wrap=True)


def print_table(table: Table, wide: int) -> None:
    """Print a table; lines of a file may be longer than those of a terminal."""
    place = console()
    (place if place.is_terminal else console(width=wide)).print(table)


def show_every_letter() -> None:
    r"""Let both streams write letters that their encoding lacks as ``\u2265`` and the like.

    Else a terminal in latin-1, or a file whose name holds bytes that are no letters, would end a
    command after hours of work.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def finish_output() -> None:
    """Write what is left to the standard output, which may be a full disk or a closed pipe.

    Python itself would do it at its end, too late for a sentence.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # What cannot be written must not be tried again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            raise
