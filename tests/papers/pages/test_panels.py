"""Panels drawn with matplotlib: repeatable and complete."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demix.papers.pages.panels import Subplot, write_panels
from demix.report.style import palette_variables
from pictures import panels_svg

OURS = [(2, 99.0, 0.1), (4, 98.5, 0.2), (8, 97.1, 0.9)]
OTHER = [(2, 98.9, 0.0), (4, 98.0, 0.0), (8, 96.5, 0.0)]
WORDS = [("sphere", 0.99, 0.01), ("box", 0.52, 0.1)]
LINES = Subplot("Lines", "dimension", "R²", {"other": OTHER, "ours": OURS}, log_x=True)
MARKS = Subplot("Marks", "space", "MCC", {"ours": WORDS})

NAMES = st.lists(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12),
    min_size=1,
    max_size=8,
    unique=True,
)


def shown(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.text]


@pytest.fixture(scope="module")
def svg() -> str:
    return panels_svg([LINES, MARKS])


def test_the_same_panels_give_the_same_bytes_whatever_the_user_has_set(svg, tmp_path):
    import matplotlib

    first, png = (path.read_bytes() for path in write_panels([LINES, MARKS], tmp_path))
    assert svg.encode() == first
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        again = [path.read_bytes() for path in write_panels([LINES, MARKS], tmp_path)]
        assert matplotlib.rcParams["font.size"] == 30
    assert again == [first, png]
    assert png.startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "figure.svg"]


@settings(max_examples=4, deadline=None)
@given(names=NAMES, words=st.booleans())
def test_every_name_is_shown_letter_by_letter(names, words):
    x = ["a", "b"] if words else [1, 2]
    series = {name: [(x[0], 0.0, 0.0), (x[1], index, 0.1)] for index, name in enumerate(names)}
    assert set(names) <= set(shown(panels_svg([Subplot("T", "x", "y", series)])))


def test_titles_labels_and_words_are_shown_too(svg):
    texts = shown(svg)
    assert {"Lines", "dimension", "R²", "Marks", "space", "MCC", "sphere", "box"} <= set(texts)
    assert {"2", "4", "8"} <= set(texts)
    assert texts.count("ours") == 1, "one legend serves all panels"


def test_only_colours_of_the_palette_are_used(svg):
    used = set(re.findall(r"(?:fill|stroke): (#\w+)", svg))
    assert used <= set(palette_variables()), "the page knows no dark partner of the others"


@pytest.mark.parametrize(("count", "shape"), [(3, 3), (4, 2)])
def test_at_most_three_panels_stand_in_a_row(count, shape):
    panels = [Subplot(f"Panel {index}", "x", "y", {"ours": OURS}) for index in range(count)]
    titles = re.findall(r'x="([\d.]+)" y="[\d.]+"[^>]*>Panel \d', panels_svg(panels))
    assert len(titles) == count
    # The last row may be short; titles of one column start within a few points of one another.
    assert len({round(float(x) / 40) for x in titles}) == shape


def test_arrays_single_points_and_crowded_axes_can_be_drawn():
    many = {"a": [(x, x, 0.1 * x) for x in np.geomspace(1, 1e6, 60)]}
    one = {"a": [(3.5, 1.0, 0.2)]}
    words = {"a": [("von Mises–Fisher", 1.0, 0.0), ("w" * 40, 1.0, 0.0)]}
    panels_svg(
        [
            Subplot("T", "x", "y", many, log_x=True),
            Subplot("T", "x", "y", one),
            Subplot("T", "x", "y", one, log_x=True),
            Subplot("T", "x", "y", words),
        ]
    )


def test_matplotlib_is_imported_only_when_a_figure_is_drawn():
    code = "import sys, demix.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
