"""Bars beside chance: sorted, few enough to read, the same bytes each time."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from demix._support.errors import DemixError
from demix.report.blocks import Page, Picture, Section, render
from demix.report.probe import MOST, bars_svg, write_bars

P = {"surely": (0.01, 0.01), "mostly": (0.1, 0.01), "no": (0.1, 0.1)}


def bar(name: str, value: float, found: str = "surely") -> dict[str, Any]:
    return {
        **{"name": name, "testable": True, "measure": "auc", "value": value},
        **{"low": value - 0.1, "high": value + 0.05},
        "chance": {"value": 0.5, "low": 0.45, "high": 0.55},
        **dict(zip(("bonferroni", "benjamini_hochberg"), P[found], strict=True)),
    }


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_best_come_first_and_dollars_are_dollars(tmp_path):
    factors = [bar("low", 0.6, "no"), bar("$x$", 0.9), bar("middle", 0.7, "mostly")]
    svg = bars_svg(factors, 0.05)
    assert "Held-out AUC" in texts(svg)
    named = [word for word in texts(svg) if word in ("low", "$x$", "middle")]
    assert named == ["$x$", "middle", "low"]
    for words in ("Bonferroni", "Benjamini-Hochberg", "not above chance", "shuffled rows"):
        assert any(words in text for text in texts(svg))
    vector, picture = write_bars(factors, 0.05, tmp_path)
    assert vector.read_text(encoding="utf-8") == svg
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = render(Page("Bars", "", [Section("One", [Picture(svg, "Bars.", alt="Bars.")])]))
    assert "middle" in page


def test_only_the_best_of_very_many_are_drawn():
    svg = bars_svg([bar(f"factor {i}", 0.5 + i / 200) for i in range(MOST + 5)], 0.05)
    named = [word for word in texts(svg) if word.startswith("factor ")]
    assert len(named) == MOST
    assert named[0] == f"factor {MOST + 4}"
    assert any(f"the best {MOST} of {MOST + 5}" in word for word in texts(svg))


def test_a_figure_of_nothing_is_refused():
    with pytest.raises(DemixError, match="at least one bar"):
        bars_svg([], 0.05)
