"""Let pages of the site link to files of the repository, as they do on a code host.

A page under docs/ that links to ``../results/ce-diet/table.md`` is right in the repository, but the
site holds only docs/. So whatever lies outside and is linked to comes along, under the same path
below ``repository/``, and links are turned there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS, OUTSIDE = "docs", "repository"
# A worker for pages that are opened as files.
FETCHED = re.compile(r'(?<=src=")https://[^"]*/iframe-worker/shim(?=")')
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to outside docs/, and what that links to."""
    pages = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(pages)
    while pages:
        page = pages.pop()
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in {_target(page, link) for link in LINK.findall(text)} - seen:
            if target.startswith(f"{DOCS}/") or not (ROOT / target).is_file():
                continue  # the build itself looks at these
            seen.add(target)
            files.append(File.generated(config, _place(target), abs_src_path=str(ROOT / target)))
            if target.endswith(".md"):
                pages.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links out of docs/, and links of pages that came along."""
    source = page.file.src_uri
    own = source.removeprefix(f"{OUTSIDE}/") if source.startswith(f"{OUTSIDE}/") else None
    name = own or f"{DOCS}/{source}"
    here = PurePosixPath(source).parent

    def turned(match: re.Match[str]) -> str:
        place = _place(_target(name, match[1]))
        known = files.get_file_from_path(place)
        return match[1] if known is None else os.path.relpath(place, here)

    return LINK.sub(turned, markdown)


def _target(page: str, link: str) -> str:
    """Return the path in the repository that a link of a page leads to."""
    return os.path.normpath(PurePosixPath(page).parent / link)


def _place(target: str) -> str:
    """Return where a file of the repository lies on the site."""
    inside = target.startswith(f"{DOCS}/")
    return target.removeprefix(f"{DOCS}/") if inside else f"{OUTSIDE}/{target}"


def on_post_build(config: Any) -> None:
    """Take the one script that the offline plugin fetches from elsewhere from the site itself."""
    site = Path(config["site_dir"])
    for page in site.rglob("*.html"):
        own = os.path.relpath(site / "assets" / "worker.js", page.parent)
        text = page.read_text(encoding="utf-8")
        page.write_text(FETCHED.sub(own, text), encoding="utf-8")
