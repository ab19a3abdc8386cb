"""A page becomes one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from demix._support.files import write_atomic
from demix._support.outputs import refuse_other
from demix.report.blocks import Block, Figure, Gallery, Page, Picture, Table
from demix.report.drawing import inlined
from demix.report.style import palette_css, palette_variables

MARK = b'<meta name="generator" content="demix">'
"""What is among the first bytes of every page."""


def render(page: Page) -> str:
    r"""HTML of a page; the same page gives the same text.

    Examples
    --------
    >>> html = render(Page("a < b", "", []))
    >>> "<h1>a &lt; b</h1>" in html
    True
    """
    sections = []
    figures = tables = 0
    plots = False
    for section in page.sections:
        body: list[tuple[Block, Any]] = []
        for block in section.body:
            extra: Any = None
            if isinstance(block, Figure):
                figures += 1
                plots = True
                extra = _figure_spec(block.figure, figures)
            elif isinstance(block, Picture):
                figures += 1
                extra = _picture_spec(block.svg, figures)
            elif isinstance(block, Gallery):
                figures += 1
                extra = {"number": figures}
            elif isinstance(block, Table):
                tables += 1
                extra = {"number": tables, "right": _numeric_columns(block)}
            body.append((block, extra))
        sections.append({"title": section.title, "body": body})
    template_folder = files("demix.report") / "template"
    return _template().render(
        page=page,
        sections=sections,
        css=Markup((template_folder / "page.css").read_text(encoding="utf-8")),
        js=Markup((template_folder / "page.js").read_text(encoding="utf-8")),
        palette_css=Markup(palette_css()),
        palette_json=_script_json(json.dumps(palette_variables())),
        # A page without plotly figures does not carry 5 MB of plotting library.
        plotly_js=Markup(get_plotlyjs()) if plots else "",
    )


def write_page(page: Page, path: str | Path) -> Path:
    """Write a page to a file, completely or not at all; missing folders are made.

    An earlier page is replaced, any other file is refused.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Page("Demo", "", []), Path(folder) / "demo.html").name
    'demo.html'
    """
    refuse_other(Path(path), MARK)
    return write_atomic(path, render(page))


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["paragraphs"] = _paragraphs
    environment.filters["base64"] = _base64
    source = files("demix.report") / "template" / "page.html"
    return environment.from_string(source.read_text(encoding="utf-8"))


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def _figure_spec(figure: go.Figure, number: int) -> dict[str, Any]:
    meta = figure.layout.meta or {}
    return {
        "number": number,
        "json": _script_json(figure.to_json()),
        "height": int(figure.layout.height or 420),
        "min_width": int(meta.get("min_width", 300)),
    }


def _picture_spec(svg: str, number: int) -> dict[str, Any]:
    view, contents = inlined(svg, f"figure-{number}-")
    width = float(view.split()[2])
    return {
        "number": number,
        "view": view,
        "contents": Markup(contents),
        # Letters of 8.5 units stay between 8 and 14 pixels; a narrower screen scrolls.
        "min_width": round(0.95 * width),
        "max_width": round(1.62 * width),
    }


def _script_json(text: str) -> Markup:
    # Inside <script> entities are not decoded, so what could end the element or open a comment
    # is written as a JSON escape instead.
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


_NUMBER = re.compile(r"[+−-]?\d[\d,. ]*(e[+−-]?\d+)?( ?± ?\d[\d.]*)? ?%?|[–—-]?", re.IGNORECASE)


def _numeric_columns(table: Table) -> list[bool]:
    return [
        bool(table.rows) and all(_NUMBER.fullmatch(str(row[index])) for row in table.rows)
        for index in range(len(table.header))
    ]
