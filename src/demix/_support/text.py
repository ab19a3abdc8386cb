"""Words of other libraries and of files, fit to stand inside a sentence."""

from __future__ import annotations


def reason(error: BaseException) -> str:
    """Return what another library says, fit to stand inside a sentence."""
    said = str(getattr(error, "strerror", None) or error).strip() or type(error).__name__
    return shortened(said.splitlines()[0].rstrip("."), 200)


def shortened(text: str, most: int = 40) -> str:
    r"""Return what a file says, fit to stand inside a sentence: printable and not too long.

    Examples
    --------
    >>> from demix._support.text import shortened
    >>> shortened("a\x07" + 100 * "b", 8)
    'a?bbb...'
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
