"""Lists of whole numbers on the command line."""

from __future__ import annotations

from demix._support.errors import DemixError

# Rows or seeds that may be asked for at once; each is some seconds of work at least.
_MOST = 10_000


def numbers(text: str, option: str) -> list[int]:
    """Read ``1,2,5-7``.

    Examples
    --------
    >>> from demix.cli.numbers import numbers
    >>> numbers("1,5-7", "--rows")
    [1, 5, 6, 7]
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            span = range(int(first), int(last if dash else first) + 1)
            if not span or span[-1] - span[0] + len(found) >= _MOST:
                raise ValueError(part)
            found += span
    except ValueError:
        raise DemixError(
            f"{option} takes whole numbers such as 1,2,5-7, at most {_MOST} of them, but got "
            f"{text!r}."
        ) from None
    return found
