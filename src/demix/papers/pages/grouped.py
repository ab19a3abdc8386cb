"""Bars in groups, with errors, stars and a level of chance, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from demix.report.static import write_figure
from demix.report.style import colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("accent", "second", "soft", "third", "fourth", "fifth", "sixth")
_WIDTH, _HEIGHT = 9.15, 3.4  # in inches, as wide as three panels
_GROUP = 0.8  # share of a group's place that its bars take


Bars = Sequence[tuple[float, float, bool] | None]
"""Height, error, and whether there is a star, in each group; None for what was not measured."""


def write_grouped_bars(
    title: str,
    y_label: str,
    groups: Sequence[str],
    bars: Mapping[str, Bars],
    folder: str | Path,
    *,
    chance: float,
) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder: bars of one colour by their name.

    Bars begin at chance, a dashed line. Groups without any bar are marked as too rare.
    """
    return write_figure(lambda: _drawn(title, y_label, groups, bars, chance), folder)


def _drawn(
    title: str, y_label: str, groups: Sequence[str], bars: Mapping[str, Bars], chance: float
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    width = _GROUP / len(bars)
    for number, (name, each) in enumerate(bars.items()):
        shade = colour(_COLOURS[number % len(_COLOURS)])
        shift = width * (number - (len(bars) - 1) / 2)
        known = [(k + shift, *bar) for k, bar in enumerate(each) if bar is not None]
        places, heights, errors = ([one[k] for one in known] for k in range(3))
        above = [height - chance for height in heights]
        axes.bar(places, above, 0.92 * width, bottom=chance, color=shade, label=name)
        axes.errorbar(places, heights, errors, fmt="none", ecolor=colour("ink"), elinewidth=0.9)
        for place, height, error, star in known:
            if star:
                top = max(height, chance) + error
                axes.annotate("*", (place, top), (0, -2), textcoords="offset points", ha="center")
    for place in range(len(groups)):
        if all(each[place] is None for each in bars.values()):
            text = axes.annotate("too rare", (place, chance), (0, 4), textcoords="offset points")
            text.set(fontsize=8, rotation=90, ha="center", color=colour("soft"))
    axes.axhline(chance, color=colour("ink"), linestyle="--", linewidth=1)
    axes.set_title(title)
    axes.set_ylabel(y_label)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.set_xticks(
        range(len(groups)), groups, rotation=30, ha="right", va="top", rotation_mode="anchor"
    )
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.08)
    figure.legend(loc="outside upper left", ncols=len(bars), handlelength=1.2, columnspacing=1.8)
    return figure
