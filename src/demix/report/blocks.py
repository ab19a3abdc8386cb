"""What a report page is made of: plain data, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import plotly.graph_objects as go

from demix._support.errors import DemixError
from demix.report.drawing import parsed

Kind = Literal["good", "bad", "neutral"]
VERDICTS = get_args(Kind)


@dataclass(frozen=True)
class Text:
    r"""Prose. A blank line starts a new paragraph; markup is shown, not obeyed.

    Examples
    --------
    >>> Text("First.\n\nSecond.").tag
    'text'
    """

    text: str
    tag: ClassVar[str] = "text"


@dataclass(frozen=True)
class Figure:
    """A plotly figure with a caption, and with a description for those who cannot see it.

    Two neighbouring figures with ``half=True`` stand side by side on a wide screen.

    Examples
    --------
    >>> Figure(go.Figure(), "Nothing yet.", alt="An empty plot.").half
    False
    """

    figure: go.Figure
    caption: str
    alt: str
    half: bool = False
    tag: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Picture:
    """An SVG with a caption, and with a description for those who cannot see it.

    It is made of marks and text; one that holds scripts or refers to anything outside is refused.
    Palette colours follow the page into dark mode; see `panels_svg` for a picture in them.

    Examples
    --------
    >>> Picture('<svg viewBox="0 0 9 5"/>', "Nothing yet.", alt="An empty picture.").alt
    'An empty picture.'
    """

    svg: str
    caption: str
    alt: str
    tag: ClassVar[str] = "picture"

    def __post_init__(self) -> None:
        parsed(self.svg)


@dataclass(frozen=True)
class Example:
    """A small image, the words below it, and a description for those who cannot see it.

    Examples
    --------
    >>> Example(b"GIF89a", "0.5", alt="A circle.")
    Traceback (most recent call last):
    ...
    demix.DemixError: an example must be the bytes of a PNG file, but ...
    """

    png: bytes
    label: str
    alt: str

    def __post_init__(self) -> None:
        if not self.png.startswith(b"\x89PNG\r\n\x1a\n"):
            raise DemixError(
                "an example must be the bytes of a PNG file, but these begin with "
                f"{self.png[:8]!r}; encode the image as PNG first"
            )


@dataclass(frozen=True)
class Gallery:
    r"""Images in named rows, with one caption for all.

    Examples
    --------
    >>> png = b"\x89PNG\r\n\x1a\n..."
    >>> Gallery({"size": [Example(png, "small", alt="A small circle.")]}, "Circles.").tag
    'gallery'
    """

    rows: Mapping[str, Sequence[Example]]
    caption: str
    tag: ClassVar[str] = "gallery"


@dataclass(frozen=True)
class Table:
    """A table of strings: ``rows`` has one entry per ``header`` cell in every row.

    The first cell of a row names the row. Columns of numbers are set flush right.

    Examples
    --------
    >>> Table(["space", "R2"], [["box", "99.1"]], "Scores.").header
    ['space', 'R2']
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    tag: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise DemixError(
                    f"every table row needs {len(self.header)} cells, as the header has, but row "
                    f"{index} has {len(row)}; add or drop cells in that row"
                )


@dataclass(frozen=True)
class Facts:
    """Headline numbers, each with its name, shown as a row of tiles.

    Examples
    --------
    >>> Facts({"R²": "99.3 %"}).facts
    {'R²': '99.3 %'}
    """

    facts: Mapping[str, str]
    tag: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Verdict:
    """One sentence of judgement.

    Examples
    --------
    >>> Verdict("good", "All ten factors were recovered.").kind
    'good'
    """

    kind: Kind
    text: str
    tag: ClassVar[str] = "verdict"

    def __post_init__(self) -> None:
        if self.kind not in VERDICTS:
            raise DemixError(
                f"a verdict is one of {', '.join(VERDICTS)}, not {self.kind!r}; choose one of these"
            )


Block = Text | Figure | Picture | Gallery | Table | Facts | Verdict


@dataclass(frozen=True)
class Section:
    """A titled part of a page.

    Examples
    --------
    >>> len(Section("Result", [Text("It works.")]).body)
    1
    """

    title: str
    body: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report: title, one paragraph of summary, sections, and where it all came from.

    Examples
    --------
    >>> page = Page("Demo", "What happened.", [Section("Result", [Text("It works.")])])
    >>> page.title
    'Demo'
    """

    title: str
    summary: str
    sections: Sequence[Section]
    provenance: Mapping[str, str] = field(default_factory=dict)
