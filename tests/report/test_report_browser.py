"""The written page in a real browser: every figure is drawn, nothing is logged."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from browser import dump_dom
from demix.papers.pages.curves import comparison_bars
from demix.papers.pages.panels import Subplot
from demix.report.blocks import Figure, Picture, Section, write_page
from demix.report.recovery import recovery_page
from pictures import panels_svg

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='taken'\"></script>"


@pytest.fixture(scope="module")
def dom(run, tmp_path_factory):
    page = recovery_page(**{**run, "names": [HOSTILE, "scale", "hue"]})
    bars = [{"label": HOSTILE, "ours": 99.0, "ours_std": 0.5, "paper": 98.0, "paper_std": None}]
    extra = Section("Comparison", [Figure(comparison_bars(bars), "Scores.", alt="Dot plot.")])
    lines = Subplot("Lines", "x", "y", {HOSTILE: [(1, 1.0, 0.1), (2, 2.0, 0.2)]})
    marks = Subplot("Marks", "x", "y", {"paper": [("a", 1.0, 0.1), ("b", 2.0, 0.1)]})
    picture = Picture(panels_svg([lines, marks, lines]), "Scores.", alt="Three panels.")
    page = replace(page, sections=[*page.sections, extra, Section("Picture", [picture])])
    return dump_dom(write_page(page, tmp_path_factory.mktemp("report") / "report.html"))


@pytest.fixture(scope="module")
def plots(dom):
    """Drawn HTML of each figure, scripts left out."""
    text = re.sub(r"<script\b.*?</script>", "", dom, flags=re.DOTALL)
    return re.split(r'<div class="plot(?=[ "])', text)[1:]


def test_every_figure_is_drawn(plots):
    assert len(plots) == 5
    for plot in plots:
        assert plot.startswith(" js-plotly-plot")
        assert 'class="main-svg"' in plot


def test_every_kind_of_mark_is_there(plots):
    scatter, before, after, training, comparison = plots
    assert scatter.count('class="point"') == 3 * 200
    for heatmap in (before, after):
        assert heatmap.count("<image") == 1
        assert heatmap.count("heatmap-label") >= 1
        assert "1.00</text>" in heatmap
    # Three lines, and three samples of them in the legend.
    assert training.count('class="js-line"') == 3 + 3
    assert comparison.count('class="xerror"') == 1
    assert comparison.count('class="point plotly-customdata"') == 2


def test_hostile_names_are_shown_as_they_are_and_do_nothing(dom, plots):
    assert "<title>Three factors</title>" in dom
    assert not any("<img" in plot for plot in plots)
    assert "&lt;img src=x" in plots[0]


def test_a_picture_is_shown_with_its_words(dom):
    (drawn,) = re.findall(r'<svg class="picture".*?</svg>', dom, flags=re.DOTALL)
    assert "<img" not in drawn
    assert "&lt;img src=x" in drawn
    assert 'aria-label="Three panels."' in drawn
    assert ">Marks</text>" in drawn
