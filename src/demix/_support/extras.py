"""Libraries that only some users need: imported when they are, with a word on how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from demix._support.errors import DemixError


def need(library: str, what: str, extra: str) -> Any:
    """Import a library of an extra, or say how to get it.

    Parameters
    ----------
    library : str
        The module to import.
    what : str
        What is about to happen, as the beginning of a sentence.
    extra : str
        The extra of this package that brings the library.

    Examples
    --------
    >>> from demix._support.extras import need
    >>> need("no_such_library", "Reading tea leaves", "tea")
    Traceback (most recent call last):
    demix.DemixError: Reading tea leaves needs no_such_library, which is not installed; ...
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise DemixError(
            f"{what} needs {library.partition('.')[0]}, which is not installed; install it with: "
            f"pip install 'demix[{extra}]'."
        ) from error
