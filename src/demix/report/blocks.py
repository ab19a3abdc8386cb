"""The blocks of a page, and the page as one HTML file that needs nothing but itself."""

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Literal
from xml.etree import ElementTree

import plotly.graph_objects as go
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.outputs import PAGE, refuse_other
from demix.report.style import PALETTE, palette_variables, shown
from demix.report.words import said

VerdictKind = Literal["good", "bad", "neutral"]

# Of pictures left out: what nobody sees, and style sheets, which would reach the whole page.
_DROPPED = {"metadata", "style", "title", "desc"}
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_NUMBER = re.compile(r"[+−-]?\d[\d,. ]*(e[+−-]?\d+)?( ?± ?\d[\d.]*)? ?%?|[–—-]?", re.IGNORECASE)


class Block:
    """A part of a page; the macro of its name in ``template/blocks.html`` is its HTML."""

    counted_as: ClassVar[str] = ""
    """Blocks of one word are numbered together."""
    needs_plotly: ClassVar[bool] = False

    def html(self, number: int) -> Markup:
        """Return the HTML of the block, the ``number``-th of its kind on the page."""
        macros = templates().get_template("blocks.html").module
        return Markup(getattr(macros, type(self).__name__.lower())(self, number))


@dataclass(frozen=True)
class Text(Block):
    """Prose. A blank line starts a new paragraph; markup is escaped."""

    text: str


@dataclass(frozen=True)
class Figure(Block):
    """A plotly figure with a caption and a description for those who cannot see it.

    Two neighbouring figures with ``half=True`` stand side by side on a wide screen.
    """

    figure: go.Figure
    caption: str
    alt: str
    half: bool = False
    counted_as: ClassVar[str] = "figure"
    needs_plotly: ClassVar[bool] = True


@dataclass(frozen=True)
class Picture(Block):
    """An SVG of ours with a caption and a description for those who cannot see it.

    Palette colours follow the page into dark mode.
    """

    svg: str
    caption: str
    alt: str
    counted_as: ClassVar[str] = "figure"

    def parts(self, number: int) -> tuple[str, Markup, int, int]:
        """Return viewBox, contents and the smallest and largest width in pixels."""
        view, contents = inline_svg(self.svg, f"figure-{number}-")
        width = float(view.split()[2])
        # Letters of 8.5 units stay between 8 and 14 pixels; a narrower screen scrolls.
        return view, Markup(contents), round(0.95 * width), round(1.62 * width)


@dataclass(frozen=True)
class Example:
    """A small image, the words below it, and a description for those who cannot see it."""

    png: bytes
    label: str
    alt: str


@dataclass(frozen=True)
class Gallery(Block):
    """Images in named rows, with one caption for all."""

    rows: Mapping[str, Sequence[Example]]
    caption: str
    counted_as: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Table(Block):
    """A table of strings: every row has one entry per ``header`` cell.

    The first cell of a row names the row. Columns of numbers are set flush right.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    counted_as: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.header):
                width = len(self.header)
                raise DemixError(f"row {index} needs {width} cells, as the header, not {len(row)}")

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers only."""
        return [
            bool(self.rows) and all(_NUMBER.fullmatch(str(row[index])) for row in self.rows)
            for index in range(len(self.header))
        ]


@dataclass(frozen=True)
class Facts(Block):
    """Headline numbers by name, shown as a row of tiles."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class Verdict(Block):
    """One sentence of judgement."""

    kind: VerdictKind
    text: str


@dataclass(frozen=True)
class Section:
    """A titled part of a page."""

    title: str
    body: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report: title, one paragraph of summary, sections, provenance."""

    title: str
    summary: str
    sections: Sequence[Section]
    provenance: Mapping[str, object] = field(default_factory=dict)


def noted(notes: Sequence[str]) -> list[Section]:
    """Return the section of warnings, one paragraph each; none without any."""
    return [Section("Notes", [Text(note) for note in notes])] if notes else []


def settings(facts: Mapping[str, object]) -> list[Table]:
    """Return the table of what was assumed and used; none without any facts."""
    lines = [[name, shown(value)] for name, value in facts.items()]
    return [Table(["Setting", "Value"], lines, **said("settings"))] if facts else []


@cache
def templates() -> Environment:
    """Return the environment of the templates, which escapes everything."""
    folder = files("demix.report") / "template"
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
    )
    environment.filters["base64"] = lambda data: b64encode(data).decode("ascii")
    environment.filters["paragraphs"] = lambda text: [
        part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()
    ]
    # JSON for a ``script`` element: what could end it becomes a JSON escape.
    unsafe = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
    environment.filters["script"] = lambda text: Markup(text.translate(unsafe))
    return environment


def inline_svg(svg: str, prefix: str) -> tuple[str, str]:
    """Return viewBox and contents of an SVG, for an ``svg`` element inside HTML."""
    # Ids get a prefix of the picture; palette colours become CSS variables, for dark mode.
    root = ElementTree.fromstring(svg)
    variables = palette_variables()

    def shade(match: re.Match[str]) -> str:
        return f"var({variables[match[0]]})" if match[0] in variables else match[0]

    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without a namespace, as in HTML
        for child in list(element):
            if child.tag.rpartition("}")[2] in _DROPPED:
                element.remove(child)
        given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        for name, start in (("id", 0), ("href", 1)):
            if name in given:
                given[name] = given[name][:start] + prefix + given[name][start:]
        if "style" in given:
            given["style"] = _COLOUR.sub(shade, given["style"])
        element.attrib = {k: v.replace("url(#", f"url(#{prefix}") for k, v in given.items()}
    contents = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    return root.attrib["viewBox"], contents


def render(page: Page) -> str:
    """Return the HTML of a page; the same page gives the same text."""
    counts: Counter[str] = Counter()
    sections = []
    for section in page.sections:
        body = []
        for block in section.body:
            counts[block.counted_as] += 1
            body.append(block.html(counts[block.counted_as]))
        sections.append({"title": section.title, "body": body})
    plots = any(block.needs_plotly for section in page.sections for block in section.body)
    template = templates().get_template("page.html")
    return template.render(
        page=page,
        sections=sections,
        palette=PALETTE,
        palette_json=json.dumps(palette_variables()),
        plotly_js=Markup(get_plotlyjs()) if plots else "",  # which is 5 MB
    )


def write_page(page: Page, path: str | Path) -> Path:
    """Write a page to a file, completely or not at all, and return the path.

    Missing folders are made. An earlier page is replaced, any other file is refused.
    """
    refuse_other(Path(path), PAGE)
    return write_atomic(path, render(page))
