"""What pages say."""

from typing import Any

from demix._support.resources import table

_WORDS = table("report/template/words.toml")


def said(name: str, **facts: object) -> dict[str, Any]:
    """Return the texts of a figure, a table or a page: ``caption``, ``alt``, ``summary``."""
    return {part: text.format(**facts) for part, text in _WORDS[name].items()}
