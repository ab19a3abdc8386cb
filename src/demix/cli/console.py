"""The terminal: text is printed literally, whatever a path or a name in it looks like."""

import errno
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from demix._support.errors import DemixWarning


class _PrintableConsole(Console):
    r"""A console that shows what controls a terminal as ``\x1b``: names in files may hold it."""

    def render(self, *given: Any, **more: Any) -> Iterable[Segment]:
        for segment in super().render(*given, **more):
            plain = segment.control or segment.text.replace("\n", "").isprintable()
            yield segment if plain else segment._replace(text=_printable(segment.text, "\n"))


def _printable(text: str, kept: str = "") -> str:
    """Return a text with escapes in place of letters that cannot be printed, except ``kept``."""
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


class _Errors:
    """The standard error; that it is a closed pipe or a full disk does not end hours of work."""

    def __init__(self) -> None:
        # While a bar is drawn, rich puts a stream of its own in its place.
        self._stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or nothing from now on."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            _discard(self._stream)
        return len(text)


def _discard(stream: Any) -> None:
    """Throw away what is written from now on: Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def console(*, errors: bool = False, **settings: Any) -> Console:
    """Return a console without markup: ``[/red]`` and ``:warning:`` may be names of files."""
    if errors and sys.stderr is not None:
        settings = {"file": _Errors(), **settings}
    return _PrintableConsole(stderr=errors, markup=False, emoji=False, highlight=False, **settings)


def print_json(data: Any, **settings: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(data, **{"indent": 2, **settings}))


def print_lines(*lines: str) -> None:
    """Print lines as they are, but for what controls a terminal: names of files may hold it."""
    for line in lines:
        print(_printable(line))


def print_warning(place: Console, sentence: str) -> None:
    """Print a warning on a line of its own, without breaking paths."""
    place.print(Text.assemble(("warning", "yellow"), f"  {_printable(sentence)}"), soft_wrap=True)


def print_error(sentence: str) -> None:
    """Print why a command ends."""
    text = Text.assemble(("Error:", "bold red"), f" {_printable(sentence)}")
    console(errors=True).print(text, soft_wrap=True)


def print_table(table: Table, wide: int) -> None:
    """Print a table, ``wide`` columns wide if the output is not a terminal."""
    place = console()
    (place if place.is_terminal else console(width=wide)).print(table)


@contextmanager
def warnings_to(place: Console) -> Iterator[None]:
    """Print every :class:`demix.DemixWarning` as one line; leave other warnings alone."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DemixWarning):
                print_warning(place, str(message))
            else:
                usual(message, category, *rest, **more)

        warnings.simplefilter("always", DemixWarning)
        warnings.showwarning = show
        yield


def escape_unknown_letters() -> None:
    r"""Let both streams write letters that their encoding lacks as ``\u2265`` and the like."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Flush the standard output; Python would do it at its end, too late for an error message."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout)
        if error.errno != errno.EPIPE:
            raise
