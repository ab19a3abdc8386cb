"""The one exception and the one warning of the package."""

from __future__ import annotations

import sys
import warnings


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
    """Give a :class:`DemixWarning` that points at the caller's line, however deep we are in demix.

    Examples
    --------
    >>> import warnings
    >>> from demix._support.errors import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("All 3 labels are alike.")
    >>> str(caught[0].message)
    'All 3 labels are alike.'
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "demix" and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DemixWarning, stacklevel=level)
