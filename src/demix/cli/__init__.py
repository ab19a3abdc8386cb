"""The command line. Only typer and rich are imported before a command runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from demix._support.errors import DemixError

# Seconds after which a rank other than 0 says what is wrong.
_GRACE = 3.0
# How numpy, torch and the loader of libraries say that there is no memory left.
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "failed to map segment")


def main() -> None:
    """Run the ``demix`` command."""
    run(_command)


def _command() -> None:
    from demix.cli import own_data, papers  # noqa: F401  they add their commands
    from demix.cli.app import app

    app()


def run(app: Callable[[], object]) -> None:
    """Run an application; bad input ends with one sentence and exit code 2."""
    try:
        # Imported here, because Ctrl-C may come while they are.
        from demix.cli.console import console, finish_output, show_every_letter
        from demix.cli.warning import warnings_to

        show_every_letter()
        _mend_environment()
        try:
            os.getcwd()  # without which libraries end the process in words of their own
            if sys.stdout is None:
                raise DemixError("The standard output is closed; send it to a file or /dev/null.")
            with warnings_to(console(errors=True)):
                app()
        finally:
            finish_output()
    except KeyboardInterrupt:
        from demix.cli.console import print_error

        print_error("Interrupted.")
        sys.exit(130)
    except (DemixError, MemoryError, RuntimeError, OSError, ImportError) as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        # All ranks refuse the same things. If rank 0 does, torchrun ends the others meanwhile.
        if os.environ.get("RANK", "0") != "0":
            time.sleep(_GRACE)
        from demix.cli.console import print_error

        print_error(sentence)
        sys.exit(2)


def _mend_environment() -> None:
    """Remove sizes that no terminal has; rich fails, prints nothing or never ends with them."""
    for name, least in (("COLUMNS", 20), ("LINES", 1)):
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdecimal() and len(size) < 5 and int(size) >= least):
            os.environ.pop(name, None)


def _sentence(error: Exception) -> str | None:
    """Return what a user is told about an error; None for one that nobody has thought of."""
    if isinstance(error, DemixError):
        return str(error)
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return (
            "Memory ran out in the middle of the work; what was finished is kept, and the same "
            "command goes on after it once there is more."
        )
    if isinstance(error, OSError) and error.strerror:
        if isinstance(error, FileNotFoundError) and error.filename is None:
            return "The current folder is gone; change to one that exists."
        place = "the output" if error.filename is None else os.fsdecode(error.filename)
        return f"Cannot use {place}: {error.strerror}; choose another place or make room."
    return None
