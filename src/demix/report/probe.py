"""The page and the figure of a probe: which factors a linear map reads out of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal

from demix._support.errors import DemixError
from demix._support.outputs import refuse_other
from demix.report.blocks import Block, Facts, Page, Picture, Section, Table, Text, Verdict
from demix.report.static import FIGURE_MARKS, figure_svg, write_figure
from demix.report.style import colour, interval, number, shown
from demix.report.words import said

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Factor = Mapping[str, Any]
"""A factor as in ``probe.json``."""
Found = Literal["surely", "mostly", "no"]

MEASURES = said("measures")
"""What tables and figures call each score."""
MOST = 40
"""Bars of a panel; more could not be read."""

_SHADES: dict[Found, str] = {"surely": "accent", "mostly": "plus1", "no": "soft"}
_NULL = "shuffled rows (95 % of them)"
_WIDTH, _ROW, _AROUND = 6.4, 0.27, 0.75  # in inches


def probe_page(found: Mapping[str, Any], *, features: str, factors: str) -> Page:
    """Return the page of a probe, ``found`` as in ``probe.json``.

    ``features`` and ``factors`` are the names of the two files.
    """
    tested = tested_of(found)
    others = [factor for factor in found["factors"] if not factor["testable"]]
    sections = [Section("Result", _result(found, tested)), Section("Numbers", [numbers_of(tested)])]
    if others:
        table = Table(
            ["Factor", "Kind", "Why"],
            [[factor["name"], factor["kind"], factor["reason"]] for factor in others],
            **said("not testable"),
        )
        sections.append(Section("Not testable", [table]))
    unmatched = [Text(words) for words in found.get("unmatched", ())]
    sections.append(Section("Method", [*unmatched, Text(said("probe method")["text"])]))
    words = said("probe", features=found["features"], rows=sum(found["rows"].values()))
    title = f"Factors of {factors} in {features}"
    return Page(title, words["summary"], sections, found["provenance"])


def tested_of(found: Mapping[str, Any]) -> list[Factor]:
    """Return the factors that were tested, the surest first."""
    tested = (factor for factor in found["factors"] if factor["testable"])
    return sorted(tested, key=lambda factor: (factor["p"], -factor["value"]))


def verdict_of(factors: Sequence[Factor], level: float) -> Verdict:
    """Return one sentence about the factors that were tested."""
    kinds = [found_at(factor, level) for factor in factors]
    sure, most = kinds.count("surely"), len(kinds) - kinds.count("no")
    numbers = {"most": most, "tested": len(kinds), "sure": sure, "few": 1 / level}
    words = said("probe verdict", are="is" if most == 1 else "are", **numbers)
    return Verdict("good" if most == len(kinds) else "neutral" if most else "bad", words["text"])


def _result(found: Mapping[str, Any], tested: Sequence[Factor]) -> list[Block]:
    level = float(found["level"])
    picture = Picture(bars_svg(tested, level), **said("probe bars", factors=len(tested)))
    facts = {
        "factors tested": str(len(tested)),
        "not testable": str(len(found["factors"]) - len(tested)),
        **{f"{part} rows": str(count) for part, count in found["rows"].items()},
        "independent rows": f"{found['effective_rows']:.0f}",
        "permutations": str(found["permutations"]),
    }
    return [verdict_of(tested, level), Facts(facts), picture]


def numbers_of(tested: Sequence[Factor]) -> Table:
    """Return the scores of tested factors with intervals, chance, p and adjusted p."""
    header = ["Factor", "kind", "score", "value", "95 % interval", "chance", "p"]
    header += ["Bonferroni", "Benjamini-Hochberg", "other scores"]
    rows = []
    for factor in tested:
        others = (
            f"{MEASURES[name]} {number(score['value'], 3)}"
            for name, score in factor["scores"].items()
            if name != factor["measure"]
        )
        p_values = (factor[key] for key in ("p", "bonferroni", "benjamini_hochberg"))
        cells = [factor["name"], factor["kind"], MEASURES[factor["measure"]]]
        cells += [number(factor["value"], 3), interval(factor["low"], factor["high"])]
        cells += [number(factor["chance"]["value"], 3), *(shown(float(p), ".2g") for p in p_values)]
        rows.append([*cells, ", ".join(others)])
    return Table(header, rows, **said("probe numbers"))


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
    for name, mark in FIGURE_MARKS.items():
        refuse_other(folder / name, mark)
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
    words = said("probe looks")
    shades = [(_SHADES[x], words[x]) for x in _SHADES if x in used] + [("second", _NULL)]
    handles = [Patch(color=colour(shade), label=label) for shade, label in shades]
    figure.legend(handles=handles, loc="outside upper left", ncols=1, handlelength=1.2)
    return figure


def _draw(axes: Axes, title: str, bars: Sequence[Factor], level: float) -> None:
    drawn = sorted(bars, key=lambda bar: bar["value"], reverse=True)[:MOST]
    more = f" (the best {MOST} of {len(bars)})" if len(bars) > MOST else ""
    axes.set_title(f"{title}{more}")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.grid(visible=False, axis="y")
    ink = colour("ink")
    for place, bar in enumerate(drawn):
        value, chance, shade = bar["value"], bar["chance"], colour(_SHADES[found_at(bar, level)])
        axes.barh(place, value - chance["value"], 0.5, left=chance["value"], color=shade)
        error = [[max(0.0, value - bar["low"])], [max(0.0, bar["high"] - value)]]
        axes.errorbar(value, place, xerr=error, fmt="none", ecolor=ink, elinewidth=1, capsize=2.5)
        low, high = chance["low"], chance["high"]
        axes.barh(place + 0.36, high - low, 0.13, left=low, color=colour("second"))
    names = [shorten(bar["name"], 40, placeholder="...") or bar["name"][:40] for bar in drawn]
    axes.set_yticks(range(len(drawn)), names)
    axes.tick_params(axis="y", labelcolor=ink)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    ends = ((bar["low"], bar["chance"]["low"], bar["chance"]["value"]) for bar in drawn)
    axes.set_xlim(min(map(min, ends)) - 0.03, 1.02)
