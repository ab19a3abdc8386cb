"""Figures of the papers: panels of scores side by side, drawn with matplotlib.

The same panels give the same bytes. Text stays text, so that a figure can be searched and the page
can set it in its own font.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from demix._support.errors import DemixError
from demix.papers.pages.series import Subplot
from demix.report.static import figure_svg, write_figure
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
# About how many letters fit below a panel before tick labels touch.
_LETTERS = 36


def panels_svg(panels: Sequence[Subplot]) -> str:
    """Return an SVG of panels, at most three in a row, with one legend above them.

    A line with a shaded band, or a mark with a bar, reaches one ``spread`` to either side.

    >>> from demix.papers.pages.series import Subplot, Series
    >>> ours = Series("ours", [2, 4, 8], [99.0, 98.5, 97.1], spread=[0.1, 0.2, 0.9])
    >>> paper = Series("paper", [2, 4, 8], [98.9, 98.0, 96.5], published=True)
    >>> svg = panels_svg([Subplot("Sphere", "dimension", "R² (percent)", [paper, ours])])
    >>> "Sphere" in svg, "paper" in svg
    (True, True)
    """
    return figure_svg(lambda: _drawn(panels))


def write_panels(panels: Sequence[Subplot], folder: str | Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing."""
    return write_figure(lambda: _drawn(panels), folder)


def _drawn(panels: Sequence[Subplot]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    if not panels:
        raise DemixError("a figure needs at least one panel, but got none; leave the figure out")
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
    lengths = [len(name) + 7 for name, _ in styles]  # with its mark and the gap behind it
    in_one_row = sum(lengths) <= letters
    figure.legend(
        [Line2D([], [], **style) for style in styles.values()],
        [fill(name, letters) for name, _ in styles],
        loc="outside upper left",
        ncols=len(styles) if in_one_row else max(1, letters // max(lengths)),
        handlelength=2.4,
        columnspacing=1.8,
    )
    return figure


def _styles(panels: Sequence[Subplot]) -> dict[tuple[str, bool], dict[str, Any]]:
    """Return line and marker of each series, alike in all panels, in order of appearance."""
    keys = dict.fromkeys((line.name, line.published) for panel in panels for line in panel.series)
    measured = [key for key in keys if not key[1]]
    styles = {}
    for index, key in enumerate(keys):
        shade = "soft" if key[1] else _COLOURS[measured.index(key) % len(_COLOURS)]
        styles[key] = {
            "color": colour(shade),
            "marker": _MARKERS[index % len(_MARKERS)],
            "markerfacecolor": colour("paper" if key[1] else shade),
            # A hollow mark still shows as a ring around one of ours on the same spot.
            "markersize": 7 if key[1] else 5,
            "linewidth": 1.1 if key[1] else 1.6,
            "linestyle": "--" if key[1] else "-",
        }
    return styles


def _draw_panel(axes: Axes, panel: Subplot, styles: dict[tuple[str, bool], dict[str, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(fill(panel.title, _LETTERS - 4))
    axes.set_xlabel(fill(panel.x_label, _LETTERS))
    axes.set_ylabel(fill(panel.y_label, 30))
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.ticklabel_format(useOffset=False)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    if panel.in_words:
        _draw_words(axes, panel, styles)
        return
    for line in panel.series:
        style = styles[line.name, line.published]
        # What was measured here lies above what was published.
        depth = 2.0 if line.published else 3.0
        axes.plot(line.x, line.y, zorder=depth, **style)
        if line.spread is None:
            continue
        if len(line.x) == 1:
            axes.errorbar(line.x, line.y, line.spread, fmt="none", ecolor=style["color"], capsize=3)
        else:
            low = [y - s for y, s in zip(line.y, line.spread, strict=True)]
            high = [y + s for y, s in zip(line.y, line.spread, strict=True)]
            band = {"color": style["color"], "alpha": 0.16, "linewidth": 0}
            axes.fill_between(line.x, low, high, zorder=depth - 0.5, **band)
    _number_ticks(axes, panel)


def _draw_words(axes: Axes, panel: Subplot, styles: dict[tuple[str, bool], dict[str, Any]]) -> None:
    words = list(dict.fromkeys(str(word) for line in panel.series for word in line.x))
    # Neighbours stand side by side, so that no bar hides another.
    step = min(0.16, 0.6 / len(panel.series))
    for index, line in enumerate(panel.series):
        style = {**styles[line.name, line.published], "linestyle": "none"}
        shift = step * (index - (len(panel.series) - 1) / 2)
        places = [words.index(str(word)) + shift for word in line.x]
        axes.errorbar(places, line.y, line.spread, elinewidth=1.2, capsize=2.5, **style)
    crowded = len(words) * (max(map(len, words)) + 2) > _LETTERS
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "va": "top", "rotation_mode": "anchor"}
    labels = [fill(word, 22) for word in words]
    axes.set_xticks(range(len(words)), labels, **(turned if crowded else {}))
    axes.set_xlim(-0.5, len(words) - 0.5)
    axes.grid(visible=False, axis="x")


def _number_ticks(axes: Axes, panel: Subplot) -> None:
    from matplotlib.ticker import MaxNLocator

    values = sorted(panel.numbers())
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
