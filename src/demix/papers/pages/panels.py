"""Figures of the papers, drawn with matplotlib: panels side by side, and bars in groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from demix.report.static import write_figure
from demix.report.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IN_A_ROW = 3
_COLOURS = ("accent", "second", "third", "fourth", "fifth", "sixth")
# One more marker than colours: two series share both only when there are more than 42.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_WIDTH, _HEIGHT = 3.05, 2.7  # of a panel, in inches
_ALONE = 4.2  # width of an only panel, which leaves its legend room for one row
_BARS = (9.15, 3.4)  # size of a figure of bars, as wide as three panels
_BAR_COLOURS = ("accent", "second", "soft")
_GROUP = 0.8  # share of a group's place that its bars take
_TURNED: dict[str, Any] = {"rotation": 30, "ha": "right", "va": "top", "rotation_mode": "anchor"}
_LETTERS = 36  # about how many letters fit below a panel before tick labels touch

Points = Sequence[tuple[Any, float, float]]
"""``x``, ``y`` and its standard deviation."""


@dataclass(frozen=True)
class Subplot:
    """One pair of axes, and points by name; those of one name look alike in all panels.

    All ``x`` are numbers, joined by a line in a shaded band, or all are words, with bars.
    """

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Points]
    log_x: bool = False

    @property
    def x(self) -> list[Any]:
        """All ``x``, each once, in the order in which they come."""
        return list(dict.fromkeys(x for points in self.series.values() for x, _, _ in points))

    @property
    def in_words(self) -> bool:
        """Whether the horizontal axis carries words."""
        return all(isinstance(x, str) for x in self.x)


def write_panels(panels: Sequence[Subplot], folder: str | Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png``: panels, three in a row, with one legend above."""
    return write_figure(lambda: _drawn(panels), folder)


def _drawn(panels: Sequence[Subplot]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    rows = math.ceil(len(panels) / IN_A_ROW)
    columns = math.ceil(len(panels) / rows)
    width = _WIDTH * columns if columns > 1 else _ALONE
    figure = Figure(
        figsize=(width, _HEIGHT * rows + 0.3),
        layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.04, hspace=0.06),
    )
    styles = _styles(panels)
    for index, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(rows, columns, index + 1), panel, styles)
    if all(panel.in_words for panel in panels):
        styles = {key: {**style, "linestyle": "none"} for key, style in styles.items()}
    letters = int(13 * width)
    lengths = [len(name) + 7 for name in styles]  # with its mark and the gap behind it
    in_one_row = sum(lengths) <= letters
    figure.legend(
        [Line2D([], [], **style) for style in styles.values()],
        [fill(name, letters) for name in styles],
        loc="outside upper left",
        ncols=len(styles) if in_one_row else max(1, letters // max(lengths)),
        handlelength=2.4,
        columnspacing=1.8,
    )
    return figure


def _styles(panels: Sequence[Subplot]) -> dict[str, dict[str, Any]]:
    """Return line and marker of each series, alike in all panels, in order of appearance."""
    names = dict.fromkeys(name for panel in panels for name in panel.series)
    styles = {}
    for index, name in enumerate(names):
        shade = colour(_COLOURS[index % len(_COLOURS)])
        styles[name] = {
            "color": shade,
            "marker": _MARKERS[index % len(_MARKERS)],
            "markerfacecolor": shade,
            "markersize": 5,
            "linewidth": 1.6,
            "linestyle": "-",
        }
    return styles


def _label(axes: Axes, title: str, y_label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title)
    axes.set_ylabel(y_label)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))


def _draw_panel(axes: Axes, panel: Subplot, styles: dict[str, dict[str, Any]]) -> None:
    _label(axes, fill(panel.title, _LETTERS - 4), fill(panel.y_label, 30))
    axes.set_xlabel(fill(panel.x_label, _LETTERS))
    axes.ticklabel_format(useOffset=False)
    if panel.in_words:
        _draw_words(axes, panel, styles)
        return
    for name, points in panel.series.items():
        x, y, spread = zip(*points, strict=True)
        axes.plot(x, y, zorder=3.0, **styles[name])
        shade = styles[name]["color"]
        if len(x) == 1:
            axes.errorbar(x, y, spread, fmt="none", ecolor=shade, capsize=3)
        else:
            low, high = np.subtract(y, spread), np.add(y, spread)
            axes.fill_between(x, low, high, zorder=2.5, color=shade, alpha=0.16, linewidth=0)
    _number_ticks(axes, panel)


def _draw_words(axes: Axes, panel: Subplot, styles: dict[str, dict[str, Any]]) -> None:
    words = panel.x
    # Neighbours stand side by side, so that no bar hides another.
    step = min(0.16, 0.6 / len(panel.series))
    for index, (name, points) in enumerate(panel.series.items()):
        x, y, spread = zip(*points, strict=True)
        style = {**styles[name], "linestyle": "none"}
        shift = step * (index - (len(panel.series) - 1) / 2)
        places = [words.index(word) + shift for word in x]
        axes.errorbar(places, y, spread, elinewidth=1.2, capsize=2.5, **style)
    crowded = len(words) * (max(map(len, words)) + 2) > _LETTERS
    labels = [fill(word, 22) for word in words]
    axes.set_xticks(range(len(words)), labels, **(_TURNED if crowded else {}))
    axes.set_xlim(-0.5, len(words) - 0.5)
    axes.grid(visible=False, axis="x")


def _number_ticks(axes: Axes, panel: Subplot) -> None:
    from matplotlib.ticker import MaxNLocator

    values = sorted(map(float, panel.x))
    if not panel.log_x:
        whole = all(value.is_integer() for value in values)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=whole))
        return
    # The values that were measured say more than powers of ten, as far as there is room.
    axes.set_xscale("log")
    labels = {value: f"{value:,.6g}" for value in values}
    room = math.log(values[-1] / values[0]) / _LETTERS
    shown: list[float] = []
    for value in values:
        if not shown or math.log(value / shown[-1]) >= room * (len(labels[value]) + 1.5):
            shown.append(value)
    axes.set_xticks(shown, [labels[value] for value in shown])
    axes.minorticks_off()


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
    """Write ``figure.svg`` and ``figure.png``: bars from chance on; groups without any are rare."""
    return write_figure(lambda: _drawn_bars(title, y_label, groups, bars, chance), folder)


def _drawn_bars(
    title: str, y_label: str, groups: Sequence[str], bars: Mapping[str, Bars], chance: float
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_BARS, layout="constrained")
    axes = figure.add_subplot()
    _label(axes, title, y_label)
    width = _GROUP / len(bars)
    for number, (name, each) in enumerate(bars.items()):
        shade = colour(_BAR_COLOURS[number])
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
    axes.set_xticks(range(len(groups)), groups, **_TURNED)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.08)
    figure.legend(loc="outside upper left", ncols=len(bars), handlelength=1.2, columnspacing=1.8)
    return figure
