"""Bars of scores with their intervals and what chance gives, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal

from demix._support.errors import DemixError
from demix._support.outputs import refuse_other
from demix.report.static import FIGURE_MARK, figure_svg, write_figure
from demix.report.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Factor = Mapping[str, Any]
"""A factor as in ``probe.json``."""
Found = Literal["surely", "mostly", "no"]

MEASURES = {
    "r": "Pearson's r",
    "r2": "R²",
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
}
"""What tables and figures call each score."""
MOST = 40
"""Bars of a panel; more could not be read."""

_LOOKS: dict[Found, tuple[str, str]] = {
    "surely": ("accent", "above chance after Bonferroni"),
    "mostly": ("plus1", "above chance after Benjamini-Hochberg"),
    "no": ("soft", "not above chance"),
}
_NULL = "shuffled rows (95 % of them)"
_WIDTH, _ROW, _AROUND = 6.4, 0.27, 0.75  # in inches


def found_at(factor: Factor, level: float) -> Found:
    """Return whether a factor is above chance after control of all errors, of most, or not."""
    if factor["bonferroni"] <= level:
        return "surely"
    return "mostly" if factor["benjamini_hochberg"] <= level else "no"


def bars_svg(factors: Iterable[Factor], level: float) -> str:
    """Return the SVG of a bar for each factor that was tested, the best on top.

    A bar begins at the mean score of shuffled rows. There is a panel for each kind of score.
    """
    return figure_svg(lambda: _drawn(factors, level))


def write_bars(factors: Iterable[Factor], level: float, folder: Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing."""
    for name in ("figure.svg", "figure.png"):
        refuse_other(folder / name, FIGURE_MARK)
    return write_figure(lambda: _drawn(factors, level), folder)


def _drawn(factors: Iterable[Factor], level: float) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    panels: dict[str, list[Factor]] = {}
    for factor in factors:
        if factor["testable"]:
            panels.setdefault(factor["measure"], []).append(factor)
    if not panels:
        raise DemixError("a figure needs at least one bar, but no factor was tested; leave it out")
    counts = [min(len(bars), MOST) for bars in panels.values()]
    height = _ROW * sum(counts) + _AROUND * len(counts) + 0.7
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    grid = figure.add_gridspec(len(panels), 1, height_ratios=[count + 0.3 for count in counts])
    for place, (measure, bars) in enumerate(panels.items()):
        _draw(figure.add_subplot(grid[place]), f"Held-out {MEASURES[measure]}", bars, level)
    used = {found_at(bar, level) for bars in panels.values() for bar in bars}
    shades = [look for found, look in _LOOKS.items() if found in used] + [("second", _NULL)]
    handles = [Patch(color=colour(shade), label=words) for shade, words in shades]
    figure.legend(handles=handles, loc="outside upper left", ncols=1, handlelength=1.2)
    return figure


def _draw(axes: Axes, title: str, bars: Sequence[Factor], level: float) -> None:
    shown = sorted(bars, key=lambda bar: bar["value"], reverse=True)[:MOST]
    more = f" (the best {MOST} of {len(bars)})" if len(bars) > MOST else ""
    axes.set_title(f"{title}{more}")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.grid(visible=False, axis="y")
    ink = colour("ink")
    for place, bar in enumerate(shown):
        value, chance, shade = bar["value"], bar["chance"], colour(_LOOKS[found_at(bar, level)][0])
        axes.barh(place, value - chance["value"], 0.5, left=chance["value"], color=shade)
        error = [[max(0.0, value - bar["low"])], [max(0.0, bar["high"] - value)]]
        axes.errorbar(value, place, xerr=error, fmt="none", ecolor=ink, elinewidth=1, capsize=2.5)
        low, high = chance["low"], chance["high"]
        axes.barh(place + 0.36, high - low, 0.13, left=low, color=colour("second"))
    names = [shorten(bar["name"], 40, placeholder="...") or bar["name"][:40] for bar in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.tick_params(axis="y", labelcolor=ink)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    ends = ((bar["low"], bar["chance"]["low"], bar["chance"]["value"]) for bar in shown)
    axes.set_xlim(min(map(min, ends)) - 0.03, 1.02)
