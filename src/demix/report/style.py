"""The colours and the common layout of every figure, and the same colours as CSS.

Figures are written in the light colours. In a page a small script exchanges each for its dark
counterpart when the reader's system asks for dark mode.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from demix._support.resources import table

_STYLE = table("report/template/style.toml")
PALETTE: dict[str, list[str]] = _STYLE["palette"]
"""The light and the dark form of each colour."""


def styled(name: str) -> dict[str, Any]:
    """Return settings of a library that draws, with colours in the place of their names."""

    def coloured(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: coloured(part) for key, part in value.items()}
        named = isinstance(value, str) and value.startswith("{")
        return colour(value.strip("{}")) if named else value

    return coloured(_STYLE[name])


def colour(name: str) -> str:
    """Return the light colour of a palette entry, the one figures are written in."""
    return PALETTE[name][0]


def palette_variables() -> dict[str, str]:
    """Return the CSS variable of each light colour."""
    return {pair[0]: f"--{name}" for name, pair in PALETTE.items()}


def plain(text: object) -> str:
    """Escape text for plotly, which reads a subset of HTML in labels."""
    return escape(str(text), quote=False)


def number(value: float, digits: int = 2) -> str:
    """Write a number with fixed digits and a typographic minus, never a negative zero."""
    if value != value:
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def interval(low: float, high: float) -> str:
    """Write both ends of an interval with three digits."""
    return f"{number(low, 3)} to {number(high, 3)}"


def shown(value: object, form: str = ".4g") -> str:
    """Write a float in the given form with a typographic minus, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float | np.floating):
        return f"{float(value):{form}}".replace("-", "−")
    return str(value)


def base_layout(height: int, min_width: int, **extra: Any) -> dict[str, Any]:
    """Return the layout of all figures, in pixels; keyword arguments override."""
    # A screen narrower than ``min_width`` scrolls the figure sideways.
    return {
        "template": "none",
        "height": height,
        "meta": {"min_width": min_width},
        **styled("layout"),
        "uirevision": "keep",  # redrawing in other colours must not undo the reader's zoom
        **extra,
    }


def lay_out(figure: Any, layout: Mapping[str, Any], x: Sequence[Any], y: Sequence[Any]) -> None:
    """Give a figure its layout, and its panels their axes, row by row."""
    made = figure.layout.to_plotly_json()  # all at once: each change takes plotly 10 ms
    for letter, axes in (("x", x), ("y", y)):
        for place, settings in enumerate(axes, start=1):
            name = f"{letter}axis{place if place > 1 else ''}"
            made[name] = {**made.get(name, {}), **settings}
    figure.layout = {**made, **layout}


def axis(title: str | None = None, **extra: Any) -> dict[str, Any]:
    """Return an axis in the house style; keyword arguments override."""
    if title is not None:
        font = {"size": 12, "color": colour("soft")}
        extra["title"] = {"text": title, "font": font, "standoff": 8}
    return {**styled("axis"), **extra}
