"""The one exception type of the package."""

from __future__ import annotations


class DemixError(ValueError):
    """Input that cannot be used; the message says what was expected, what came and what to do.

    The command line prints the message as it stands and leaves with exit code 2.

    Examples
    --------
    >>> from demix import DemixError
    >>> issubclass(DemixError, ValueError)
    True
    """
