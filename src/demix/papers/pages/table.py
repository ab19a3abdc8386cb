"""A table of scores, as Markdown for the repository and as a page for reading."""

from collections.abc import Iterable, Mapping, Sequence

from demix.report.blocks import Block, Figure, Page, Picture, Section, Table, Text


def table_markdown(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Return Markdown of a table with a heading above it and a list of notes below.

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
    """Return the page of a reproduced table: figure, numbers, notes, provenance."""
    sections = []
    if figure is not None:
        sections.append(Section("At a glance", [figure]))
    sections.append(Section("Numbers", [Table(header, rows, title)]))
    if notes:
        paragraphs: list[Block] = [Text(note) for note in notes]
        sections.append(Section("Notes", paragraphs))
    return Page(title, summary, sections, {name: str(value) for name, value in provenance.items()})


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    # A bar or a line break inside a cell would end it.
    return " ".join(str(text).split()).replace("|", "\\|")
