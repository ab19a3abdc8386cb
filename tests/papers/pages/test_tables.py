"""Tables of results as Markdown and as a page, with our scores next to the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from demix._support.errors import DemixError
from demix.papers.pages.curves import comparison_bars
from demix.papers.pages.table import table_markdown, table_page
from demix.report.blocks import Figure


def test_markdown_keeps_bars_and_line_breaks_inside_their_cells():
    text = table_markdown("T", ["a|b", "c"], [["x\ny", "1 | 2"]], ["A note\nover two lines."])
    assert "| a\\|b | c |\n| :--- | ---: |\n| x y | 1 \\| 2 |\n\n- A note over two lines." in text
    with pytest.raises(DemixError, match="2 cells"):
        table_markdown("T", ["a", "b"], [["1"]], [])


def test_table_page_shows_the_comparison_above_the_numbers():
    bars = [{"label": "box", "ours": 99.0, "ours_std": 0.1, "paper": 98.0, "paper_std": 0.2}]
    page = table_page(
        "T",
        "S",
        ["space", "R²"],
        [["box", "99.0"]],
        Figure(comparison_bars(bars), "Scores.", alt="Scores."),
        ["A note."],
        {"seed": 0},
    )
    titles = [section.title for section in page.sections]
    assert titles == ["At a glance", "Numbers", "Notes"]
    kinds = [type(block) for section in page.sections for block in section.body]
    assert kinds.count(Figure) == 1


def test_comparison_shows_error_bars_only_where_known():
    rows = [
        {"label": "box", "ours": 99.0, "ours_std": 0.2, "paper": 98.0, "paper_std": None},
        {"label": "sphere", "ours": None, "ours_std": None, "paper": 97.0, "paper_std": 1.0},
    ]
    paper, ours = comparison_bars(rows).data
    assert ours.x[0] == 99.0
    assert np.isnan(ours.x[1])
    np.testing.assert_array_equal(paper.error_x.array, [np.nan, 1.0])
