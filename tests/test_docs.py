"""What the documents show is what the repository holds."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def fill_readme():
    spec = importlib.util.spec_from_file_location("fill", ROOT / "scripts" / "fill_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_the_committed_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert fill_readme().filled(readme) == readme


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_public_name_can_be_imported():
    import demix

    for name in demix.__all__:
        assert getattr(demix, name).__doc__, name


def test_no_file_of_the_package_is_longer_than_400_lines():
    for path in ROOT.glob("src/**/*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
