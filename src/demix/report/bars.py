"""Bars of scores with their intervals and what chance gives, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal

from demix._support.errors import DemixError
from demix._support.outputs import refuse_other
from demix.report.static import FIGURE_MARK, figure_svg, write_figure
from demix.report.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Interval = tuple[float, float]
Found = Literal["surely", "mostly", "no"]

MOST = 40
"""Bars of a panel; more could not be read."""

_LOOKS: dict[Found, tuple[str, str]] = {
    "surely": ("accent", "above chance after Bonferroni"),
    "mostly": ("plus1", "above chance after Benjamini-Hochberg"),
    "no": ("soft", "not above chance"),
}
_NULL = "shuffled rows (95 % of them)"
_WIDTH, _ROW, _AROUND = 6.4, 0.27, 0.75  # in inches


@dataclass(frozen=True)
class ScoreBar:
    """A score with its interval; the bar begins at ``chance``, the mean score of shuffled rows.

    95 % of the scores of shuffled rows lie in ``null``. ``found`` says whether the score is above
    chance after control of all errors (Bonferroni), of most (Benjamini-Hochberg), or not.
    """

    name: str
    value: float
    interval: Interval
    chance: float
    null: Interval
    found: Found


def bars_svg(panels: Mapping[str, Sequence[ScoreBar]]) -> str:
    """Return the SVG of panels of bars, by what they measure; the best bar is on top."""
    return figure_svg(lambda: _drawn(panels))


def write_bars(panels: Mapping[str, Sequence[ScoreBar]], folder: str | Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing."""
    for name in ("figure.svg", "figure.png"):
        refuse_other(Path(folder) / name, FIGURE_MARK)
    return write_figure(lambda: _drawn(panels), folder)


def _drawn(panels: Mapping[str, Sequence[ScoreBar]]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    if not panels or not all(panels.values()):
        raise DemixError("a figure needs at least one bar in each panel; leave empty ones out")
    counts = [min(len(bars), MOST) for bars in panels.values()]
    height = _ROW * sum(counts) + _AROUND * len(counts) + 0.7
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    grid = figure.add_gridspec(len(panels), 1, height_ratios=[count + 0.3 for count in counts])
    for place, (title, bars) in enumerate(panels.items()):
        _draw(figure.add_subplot(grid[place]), title, bars)
    used = {bar.found for bars in panels.values() for bar in bars}
    shades = [look for found, look in _LOOKS.items() if found in used] + [("second", _NULL)]
    figure.legend(
        handles=[Patch(color=colour(shade), label=words) for shade, words in shades],
        loc="outside upper left",
        ncols=1,
        handlelength=1.2,
    )
    return figure


def _draw(axes: Axes, title: str, bars: Sequence[ScoreBar]) -> None:
    shown = sorted(bars, key=lambda bar: bar.value, reverse=True)[:MOST]
    more = f" (the best {MOST} of {len(bars)})" if len(bars) > MOST else ""
    axes.set_title(f"{title}{more}")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.grid(visible=False, axis="y")
    for place, bar in enumerate(shown):
        shade = colour(_LOOKS[bar.found][0])
        axes.barh(place, bar.value - bar.chance, 0.5, left=bar.chance, color=shade)
        ends = [[max(0.0, bar.value - bar.interval[0])], [max(0.0, bar.interval[1] - bar.value)]]
        axes.errorbar(
            bar.value, place, xerr=ends, fmt="none", ecolor=colour("ink"), elinewidth=1, capsize=2.5
        )
        low, high = bar.null
        axes.barh(place + 0.36, high - low, 0.13, left=low, color=colour("second"))
    names = [shorten(bar.name, 40, placeholder="...") or bar.name[:40] for bar in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.tick_params(axis="y", labelcolor=colour("ink"))
    axes.set_ylim(len(shown) - 0.4, -0.6)
    least = min(min(bar.interval[0], bar.null[0], bar.chance) for bar in shown)
    axes.set_xlim(least - 0.03, 1.02)
