"""Libraries of the extra ``datasets``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from demix.errors import DemixError


def need(library: str, what: str) -> Any:
    """Import a library that only some data sets need, or say how to get it."""
    try:
        return import_module(library)
    except ImportError as error:
        raise DemixError(
            f"{what} needs {library}, which is not installed; install it with: "
            "pip install 'demix[datasets]'."
        ) from error
