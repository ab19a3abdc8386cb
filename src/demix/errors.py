"""The one exception and the one warning of the package."""

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


class DemixWarning(UserWarning):
    """Input that can be used but will give less than asked for; the message says what is lost.

    Examples
    --------
    >>> from demix import DemixWarning
    >>> issubclass(DemixWarning, UserWarning)
    True
    """
