"""Bars in groups, with errors, stars and a level of chance, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demix._support.errors import DemixError
from demix.report.static import write_figure
from demix.report.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("accent", "second", "soft", "third", "fourth", "fifth", "sixth")
_WIDTH, _HEIGHT = 9.15, 3.4  # in inches, as wide as three panels
_GROUP = 0.8  # share of a group's place that its bars take


@dataclass(frozen=True)
class GroupedBars:
    """The bars of one colour, one in each group: its height, error, and whether it has a star.

    None stands for what was not measured.
    """

    name: str
    heights: Sequence[float | None]
    errors: Sequence[float | None]
    stars: Sequence[bool]

    def __post_init__(self) -> None:
        if not len(self.heights) == len(self.errors) == len(self.stars) > 0:
            raise DemixError(
                f"bars {self.name!r} need at least one height and equally many errors and stars, "
                f"but have {len(self.heights)}, {len(self.errors)} and {len(self.stars)}"
            )


def write_grouped_bars(
    title: str,
    y_label: str,
    groups: Sequence[str],
    bars: Sequence[GroupedBars],
    folder: str | Path,
    *,
    chance: float,
) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing.

    Bars begin at chance, a dashed line. Groups without any bar are marked as too rare.
    """
    if not bars or any(len(one.heights) != len(groups) for one in bars):
        raise DemixError(f"bars need a height for each of {len(groups)} groups; fill up with None")
    return write_figure(lambda: _drawn(title, y_label, groups, bars, chance), folder)


def _drawn(
    title: str, y_label: str, groups: Sequence[str], bars: Sequence[GroupedBars], chance: float
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    width = _GROUP / len(bars)
    for number, one in enumerate(bars):
        shift = width * (number - (len(bars) - 1) / 2)
        _draw(axes, one, shift, width, chance, colour(_COLOURS[number % len(_COLOURS)]))
    for place in range(len(groups)):
        if all(one.heights[place] is None for one in bars):
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


def _draw(
    axes: Axes, bars: GroupedBars, shift: float, width: float, chance: float, shade: str
) -> None:
    measured = [place for place, height in enumerate(bars.heights) if height is not None]
    heights = [float(bars.heights[place] or 0.0) for place in measured]
    errors = [float(bars.errors[place] or 0.0) for place in measured]
    places = [place + shift for place in measured]
    axes.bar(
        places,
        [height - chance for height in heights],
        0.92 * width,
        bottom=chance,
        color=shade,
        label=bars.name,
    )
    axes.errorbar(places, heights, errors, fmt="none", ecolor=colour("ink"), elinewidth=0.9)
    for place, x, height, error in zip(measured, places, heights, errors, strict=True):
        if bars.stars[place]:
            top = max(height, chance) + error
            axes.annotate("*", (x, top), (0, -2), textcoords="offset points", ha="center")
