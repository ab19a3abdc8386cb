"""The command line. Only typer and rich are imported before a command runs."""

from __future__ import annotations

import sys

from demix.errors import DemixError


def main() -> None:
    """Run the ``demix`` command; bad input ends with one sentence and exit code 2."""
    from rich.console import Console

    from demix.cli import own_data, papers  # noqa: F401  they add their commands
    from demix.cli.app import app

    try:
        app()
    except DemixError as error:
        # Not wrapped: a path that is cut in two can be neither read nor copied.
        Console(stderr=True, highlight=False).print(
            f"[bold red]Error:[/] {_plain(str(error))}", soft_wrap=True
        )
        sys.exit(2)


def _plain(text: str) -> str:
    """Keep square brackets in a message from being read as markup."""
    return text.replace("[", r"\[")
