"""Bars show what was measured, mark what was not, and are the same to the byte."""

from __future__ import annotations

import re

from demix.papers.pages.panels import write_grouped_bars
from demix.report.blocks import inline_svg

GROUPS = ["pose", "style", "brighter"]
BARS = {
    "trained": [(71.0, 0.5, True), (64.0, 2.0, False), None],
    "pixels": [(55.0, 0.4, True), (48.0, 1.0, False), None],
}


def test_every_name_is_text_with_stars_and_a_mark_for_what_is_missing(tmp_path):
    svg, png = write_grouped_bars("Read-outs", "accuracy", GROUPS, BARS, tmp_path, chance=50)
    text = svg.read_text(encoding="utf-8")
    assert len(inline_svg(text, "one-")[0].split()) == 4  # a page takes it
    words = re.findall(r">([^<>\n]+)</text>", text)
    for word in ("Read-outs", "accuracy", *GROUPS, "trained", "pixels"):
        assert words.count(word) == 1, word
    assert words.count("*") == 2
    assert words.count("too rare") == 1
    assert png.read_bytes().startswith(b"\x89PNG")
    again = write_grouped_bars("Read-outs", "accuracy", GROUPS, BARS, tmp_path / "b", chance=50)
    assert [path.read_bytes() for path in again] == [svg.read_bytes(), png.read_bytes()]
