"""The one exception and the one warning of the package, and helpers for their messages."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class DemixError(ValueError):
    """Input that cannot be used; the message says what was expected, what came and what to do.

    The command line prints the message as it stands and leaves with exit code 2.

    Examples
    --------
    >>> from demix import DemixError
    >>> issubclass(DemixError, ValueError)
    True
    """

    __module__ = "demix"  # as users know it


class DemixWarning(UserWarning):
    """Input that can be used but will give less than asked for; the message says what is lost.

    Examples
    --------
    >>> from demix import DemixWarning
    >>> issubclass(DemixWarning, UserWarning)
    True
    """

    __module__ = "demix"


def warn(text: str) -> None:
    """Give a :class:`DemixWarning` that points at the first line of a caller outside demix."""
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "demix" and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DemixWarning, stacklevel=level)


def reason(error: BaseException) -> str:
    """Return what another library says, as a part of a sentence."""
    said = str(getattr(error, "strerror", None) or error).strip() or type(error).__name__
    return shortened(said.splitlines()[0].rstrip("."), 200)


def shortened(text: str, most: int = 40) -> str:
    """Return what a file says, as a part of a sentence: printable and not too long."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


@contextmanager
def demix_errors(problem: str, advice: str) -> Iterator[None]:
    """Turn exceptions of other libraries into a :class:`DemixError`, "problem (why); advice"."""
    try:
        yield
    except (DemixError, MemoryError):
        raise
    except Exception as error:  # formats and their libraries fail in many ways
        raise DemixError(f"{problem} ({reason(error)}); {advice}.") from error


def listed(names: Sequence[str]) -> str:
    """Return the first few names, for a message."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def need(library: str, what: str, extra: str) -> Any:
    """Import a library of an extra that ``what`` needs; raise with how to install it."""
    try:
        return import_module(library)
    except ImportError as error:
        raise DemixError(
            f"{what} needs {library.partition('.')[0]}, which is not installed; install it with: "
            f"pip install 'demix-ica[{extra}]'."
        ) from error
