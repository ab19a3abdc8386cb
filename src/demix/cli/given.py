"""A first look at what a command is given, before libraries are loaded to read it."""

from __future__ import annotations

import os
from pathlib import Path

from demix._support.errors import DemixError


def check_given(*places: Path | None) -> None:
    """Refuse a file or folder that is not there, or may not be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from demix.cli.given import check_given
    >>> check_given(Path("nowhere.npy"))
    Traceback (most recent call last):
    demix.DemixError: Expected a file or folder to read, but nowhere.npy does not exist.
    """
    for place in places:
        if place is not None and not os.access(place, os.R_OK):
            found = "may not be read" if os.path.lexists(place) else "does not exist"
            raise DemixError(f"Expected a file or folder to read, but {place} {found}.")
