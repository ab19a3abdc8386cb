"""The terminal: text is printed as it is, whatever a path or a name in it looks like."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import TextColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text


class _PrintableConsole(Console):
    r"""A console that shows what controls a terminal as ``\x1b``: names in files may hold it."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            plain = segment.control or segment.text.replace("\n", "").isprintable()
            yield segment if plain else segment._replace(text=_printable(segment.text, "\n"))


def _printable(text: str, kept: str = "") -> str:
    """Return a text with escapes in place of letters that cannot be printed, but for ``kept``."""
    return "".join(
        letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text
    )


def console(*, errors: bool = False, **settings: Any) -> Console:
    """Return a console without markup: ``[/red]`` and ``:warning:`` may be names of files."""
    return _PrintableConsole(stderr=errors, markup=False, emoji=False, highlight=False, **settings)


def title_column() -> TextColumn:
    """Return the column of a bar that says what is done."""
    return TextColumn("{task.description}", style="bold", markup=False)


def print_warning(place: Console, sentence: str) -> None:
    """Print a warning on a line of its own, which is not broken in the middle of a path."""
    place.print(Text.assemble(("warning", "yellow"), f"  {_printable(sentence)}"), soft_wrap=True)


def print_error(sentence: str) -> None:
    """Print why a command ends; where even that cannot be written, it ends all the same."""
    with suppress(OSError):
        text = Text.assemble(("Error:", "bold red"), f" {_printable(sentence)}")
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
