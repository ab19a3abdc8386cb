"""The command line. Only typer and rich are imported before a command runs."""

from __future__ import annotations

import os
import sys
import time

from demix.errors import DemixError

# Seconds after which a rank other than 0 says what is wrong.
_GRACE = 3.0


def main() -> None:
    """Run the ``demix`` command; bad input ends with one sentence and exit code 2."""
    from rich.console import Console

    from demix.cli import own_data, papers  # noqa: F401  they add their commands
    from demix.cli.app import app

    try:
        app()
    except (DemixError, MemoryError, RuntimeError) as error:
        told = str(error)
        if not isinstance(error, DemixError):
            if not _out_of_memory(error):
                raise
            told = (
                "Memory ran out in the middle of the work; what was finished is kept, and the same "
                "command goes on after it once there is more."
            )
        # All ranks refuse the same things. If rank 0 does, torchrun ends the others meanwhile.
        if int(os.environ.get("RANK", "0")):
            time.sleep(_GRACE)
        # Not wrapped: a path that is cut in two can be neither read nor copied.
        Console(stderr=True, highlight=False).print(
            f"[bold red]Error:[/] {_plain(told)}", soft_wrap=True
        )
        sys.exit(2)


def _out_of_memory(error: Exception) -> bool:
    """Whether numpy or torch could not get memory; torch has no error of its own for it."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _plain(text: str) -> str:
    """Keep square brackets in a message from being read as markup."""
    return text.replace("[", r"\[")
