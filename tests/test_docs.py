"""What the documents show is what the repository holds."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def fill_docs():
    spec = importlib.util.spec_from_file_location("fill", ROOT / "scripts" / "fill_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_show_the_committed_results():
    fill = fill_docs()
    for name in fill.DOCUMENTS:
        document = (ROOT / name).read_text(encoding="utf-8")
        assert fill.filled(document) == document, name


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_public_name_can_be_imported():
    import demix

    for name in demix.__all__:
        assert getattr(demix, name).__doc__, name


def test_no_file_of_the_package_is_longer_than_400_lines():
    for path in ROOT.glob("src/**/*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
