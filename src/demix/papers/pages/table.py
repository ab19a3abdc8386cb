"""A table of scores, as Markdown for the repository and as a page for reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demix.papers.pages.curves import comparison_bars
from demix.report.blocks import Block, Figure, Page, Picture, Section, Table, Text


def table_markdown(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Markdown of a table with a heading above it and notes below.

    Parameters
    ----------
    title : str
        Heading.
    header : sequence of str
        Column names; the first column is set flush left, the others flush right.
    rows : sequence of sequence of str
        One cell per column.
    notes : sequence of str
        Written below as a list.

    Examples
    --------
    >>> print(table_markdown("Table 1", ["space", "R2"], [["box", "99.1"]], ["Five seeds."]))
    # Table 1
    <BLANKLINE>
    | space | R2 |
    | :--- | ---: |
    | box | 99.1 |
    <BLANKLINE>
    - Five seeds.
    <BLANKLINE>
    """
    table = Table(header, rows, title)  # checks that every row is complete
    rule = [":---"] + ["---:"] * (len(header) - 1)
    lines = [f"# {_cell(title)}", "", _line(map(_cell, table.header)), _line(rule)]
    lines += [_line(map(_cell, row)) for row in table.rows]
    if notes:
        lines += ["", *(f"- {' '.join(note.split())}" for note in notes)]
    return "\n".join(lines) + "\n"


def table_page(
    title: str,
    summary: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    figure: Figure | Picture | None,
    notes: Sequence[str],
    provenance: Mapping[str, object],
) -> Page:
    """Page of a reproduced table: the comparison as a figure, the numbers, notes, provenance.

    Parameters
    ----------
    title, summary : str
        Heading and opening paragraph.
    header, rows : sequence of str, sequence of sequence of str
        The table, one cell per column.
    figure : Figure or Picture or None
        The same to look at, shown first; see `comparison_figure` and `panels_svg`.
    notes : sequence of str
        One paragraph each.
    provenance : dict
        What is needed to make the page again.

    Returns
    -------
    Page

    Examples
    --------
    >>> page = table_page("Table 1", "", ["space"], [["box"]], None, ["Five seeds."], {"seed": 0})
    >>> [section.title for section in page.sections]
    ['Numbers', 'Notes']
    """
    sections = []
    if figure is not None:
        sections.append(Section("At a glance", [figure]))
    sections.append(Section("Numbers", [Table(header, rows, title)]))
    if notes:
        paragraphs: list[Block] = [Text(note) for note in notes]
        sections.append(Section("Notes", paragraphs))
    return Page(title, summary, sections, {name: str(value) for name, value in provenance.items()})


def comparison_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Our scores beside the paper's, as a captioned figure; see `comparison_bars` for the rows.

    Examples
    --------
    >>> row = {"label": "box", "ours": 99.2, "ours_std": None, "paper": 98.9, "paper_std": 0.1}
    >>> comparison_figure([row]).alt
    "Dot plot of 1 scores, ours beside the paper's."
    """
    return Figure(
        comparison_bars(rows),
        "Our scores beside those printed in the paper. Bars reach one standard deviation to "
        "either side; the axis spans only the range of the scores.",
        alt=f"Dot plot of {len(rows)} scores, ours beside the paper's.",
    )


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    # A bar or a line break inside a cell would end it.
    return " ".join(str(text).split()).replace("|", "\\|")
