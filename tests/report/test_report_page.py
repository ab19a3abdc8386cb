"""The page as text: safe, self-contained, written whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

import plotly.graph_objects as go
import pytest

from demix._support.errors import DemixError
from demix.papers.pages.panels import Subplot
from demix.report.blocks import (
    Example,
    Facts,
    Figure,
    Gallery,
    Page,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
    render,
    write_page,
)
from demix.report.recovery import recovery_page
from pictures import panels_svg

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(1)'>&\"{{ 7 * 7 }}"


def hostile_panel() -> Subplot:
    # Short enough for one line each, so that it can be counted.
    text = "<script>alert(1)</script>"
    return Subplot(text, text, text, {HOSTILE: [(text[:22], 1.0, 0.1)]})


def hostile_page() -> Page:
    figure = go.Figure(go.Scatter(y=[1, 2], name=HOSTILE), layout={"title": {"text": HOSTILE}})
    blocks = [
        Text(HOSTILE),
        Figure(figure, HOSTILE, alt=HOSTILE),
        Picture(panels_svg([hostile_panel()]), HOSTILE, alt=HOSTILE),
        Table([HOSTILE], [[HOSTILE]], HOSTILE),
        Facts({HOSTILE: HOSTILE}),
        Verdict("bad", HOSTILE),
        Gallery({HOSTILE: [Example(b"\x89PNG\r\n\x1a\n", HOSTILE, alt=HOSTILE)]}, HOSTILE),
    ]
    return Page(HOSTILE, HOSTILE, [Section(HOSTILE, blocks)], {HOSTILE: HOSTILE})


def without_scripts(html: str) -> str:
    return re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)


def test_everything_supplied_is_escaped_wherever_it_stands():
    html = render(hostile_page())
    text = without_scripts(html)
    assert "alert(1)</script>" not in html
    assert re.findall(r"<img [^ ]{10}", text) == ['<img src="data:']
    assert text.count("&lt;script&gt;alert(1)") == 15 + 2 + 5 + 4
    assert "{{ 7 * 7 }}" in text


def test_a_page_refers_to_nothing_outside_itself(run):
    html = render(recovery_page(**run))
    text = without_scripts(html)
    assert not re.search(r"\b(src|srcset|action|data)\s*=", text)
    assert set(re.findall(r'href="(.)', text)) == {"#"}
    assert not re.search(r"@import|url\(", text)
    assert not re.search(r"<script[^>]*\bsrc", html)
    assert "default-src 'none'" in text
    assert "://" not in text


def test_the_plotting_library_is_embedded_once_and_the_file_stays_small(run):
    html = render(recovery_page(**run))
    assert html.count("plotly.js v") == 1
    assert len(html.encode()) < 6_000_000


def test_a_page_without_figures_carries_no_plotting_library():
    assert len(render(Page("Words", "", [Section("Only", [Text("Words.")])]))) < 20_000


def test_pictures_share_no_ids_and_bring_neither_links_nor_style_sheets():
    svg = panels_svg([Subplot("T", "x", "y", {"#1f5fa8": [(1, 1.0, 0.1), (2, 2.0, 0.1)]})])
    picture = Picture(svg, "One & only.", alt="A line.")
    html = render(Page("Twice", "", [Section("Pictures", [picture, picture])]))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(set(ids)) == len(ids)
    referred = set(re.findall(r'(?:url\(#|href="#)([^")]+)', html))
    assert len([name for name in referred if name.startswith("figure-")]) >= 4
    assert referred <= set(ids)
    assert html.count("<style") == 1
    assert "://" not in html
    assert html.count('role="img" aria-label="A line."') == 2
    # A name that looks like a colour stays; the colours themselves follow the page.
    assert "#1f5fa8</text>" in html
    assert "stroke: var(--accent)" in html
    assert len(html) < 60_000


def test_rendering_is_repeatable(run):
    assert render(recovery_page(**run)) == render(recovery_page(**run))


def test_headings_tables_and_figures_are_accessible(run):
    text = without_scripts(render(recovery_page(**run)))
    assert text.count("<h1>") == 1
    assert '<a class="skip" href="#main">' in text
    assert text.count('role="img" aria-label="') == text.count("<figure") == 4
    anchors = set(re.findall(r'(?:href="#|aria-labelledby=")([\w-]+)', text))
    assert anchors <= set(re.findall(r'\bid="([\w-]+)"', text))
    assert not re.search(r"<th(?! scope=)[ >]", text)


def test_text_is_split_into_paragraphs_and_numbers_are_set_flush_right():
    table = Table(["name", "R²", "note"], [["a", "−1.5 ± 0.2 %", "x"], ["b", "–", "2"]], "Scores.")
    html = render(Page("T", "", [Section("S", [Text("One.\n \nTwo."), table])]))
    assert "<p>One.</p>\n<p>Two.</p>" in html
    assert '<td class="num">−1.5 ± 0.2 %</td><td>x</td>' in html


def test_writing_makes_folders_and_leaves_only_the_page(tmp_path: Path):
    target = tmp_path / "new" / "report.html"
    assert write_page(Page("First", "", []), target) == target
    write_page(Page("Second", "", []), target)
    assert "<h1>Second</h1>" in target.read_text(encoding="utf-8")
    assert os.listdir(target.parent) == ["report.html"]


def test_a_failed_write_keeps_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = write_page(Page("Old", "", []), tmp_path / "report.html")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DemixError, match="No space left on device"):
        write_page(Page("New", "", []), target)
    assert "<h1>Old</h1>" in target.read_text(encoding="utf-8")
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_folder_in_the_way_is_named(tmp_path: Path):
    with pytest.raises(DemixError, match="but it is a folder"):
        write_page(Page("T", "", []), tmp_path)
    assert os.listdir(tmp_path.parent).count(tmp_path.name) == 1


def test_rows_of_a_table_are_of_one_length():
    with pytest.raises(DemixError, match="row 1 needs 2 cells, as the header, not 1"):
        Table(["a", "b"], [["1", "2"], ["3"]], "Uneven.")
