"""Bars show what was measured, mark what was not, and are the same to the byte."""

from __future__ import annotations

import re

import pytest

from demix import DemixError
from demix.papers.pages.grouped import GroupedBars, write_grouped_bars
from demix.report.svg import parse_svg

GROUPS = ["pose", "style", "brighter"]
TRAINED = GroupedBars("trained", [71.0, 64.0, None], [0.5, 2.0, None], [True, False, False])
PIXELS = GroupedBars("pixels", [55.0, 48.0, None], [0.4, 1.0, None], [True, False, False])


def test_every_name_is_text_with_stars_and_a_mark_for_what_is_missing(tmp_path):
    svg, png = write_grouped_bars(
        "Read-outs", "accuracy", GROUPS, [TRAINED, PIXELS], tmp_path, chance=50
    )
    text = svg.read_text(encoding="utf-8")
    parse_svg(text)  # a page takes it
    words = re.findall(r">([^<>\n]+)</text>", text)
    for word in ("Read-outs", "accuracy", *GROUPS, "trained", "pixels"):
        assert words.count(word) == 1, word
    assert words.count("*") == 2
    assert words.count("too rare") == 1
    assert png.read_bytes().startswith(b"\x89PNG")
    again = write_grouped_bars(
        "Read-outs", "accuracy", GROUPS, [TRAINED, PIXELS], tmp_path / "b", chance=50
    )
    assert [path.read_bytes() for path in again] == [svg.read_bytes(), png.read_bytes()]


def test_bars_that_do_not_fit_their_groups_are_refused(tmp_path):
    with pytest.raises(DemixError, match="a height for each of 2 groups"):
        write_grouped_bars("", "", GROUPS[:2], [TRAINED], tmp_path, chance=50)
    with pytest.raises(DemixError, match="a height for each of 3 groups"):
        write_grouped_bars("", "", GROUPS, [], tmp_path, chance=50)
    with pytest.raises(DemixError, match="but have 2, 1 and 1"):
        GroupedBars("x", [1.0, 2.0], [0.1], [True])
    assert not list(tmp_path.iterdir())
