"""A page as one HTML file that needs nothing but itself."""

import json
from collections import Counter
from pathlib import Path

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from demix._support.files import write_atomic
from demix._support.outputs import PAGE, refuse_other
from demix.report.blocks import Page, templates
from demix.report.style import palette_css, palette_variables


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
        palette_css=Markup(palette_css()),
        palette_json=json.dumps(palette_variables()),
        # A page without plotly figures does not carry 5 MB of plotting library.
        plotly_js=Markup(get_plotlyjs()) if plots else "",
    )


def write_page(page: Page, path: str | Path) -> Path:
    """Write a page to a file, completely or not at all, and return the path.

    Missing folders are made. An earlier page is replaced, any other file is refused.
    """
    refuse_other(Path(path), PAGE)
    return write_atomic(path, render(page))
