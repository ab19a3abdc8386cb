"""The pages build into a site whose links lead somewhere, and that needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import dump_dom

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("mkdocs", reason="the group `docs` is not installed")


class Loads(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        fetched = tag == "link" and given.get("rel") in ("stylesheet", "preconnect", "icon")
        name = "href" if fetched else "src"
        if given.get(name):
            self.found.append(str(given[name]))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built as `make site` does: every warning, such as a dead link, ends it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        elsewhere = [link for link in loads.found if re.match(r"(\w+:)?//", link)]
        assert not elsewhere, (page.name, elsewhere)


def test_every_public_name_has_its_place_in_the_api(site):
    import demix.papers

    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for face in (demix, demix.papers):
        for name, module in face._MODULE_OF.items():
            assert f'id="{face.__name__}.{module}.{name}"' in pages, name


def test_no_markup_of_docstrings_is_left_over(site):
    for page in site.glob("api/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r":(math|class|func|meth):|\.\. math::", text), page.name


@pytest.mark.browser
def test_pages_that_are_opened_as_files_can_be_searched(site):
    page = dump_dom(site / "index.html", query="?q=laplace")
    assert "md-search-result__item" in page
