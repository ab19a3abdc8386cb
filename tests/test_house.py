"""The shape of the project: what ARCHITECTURE.md promises of names, sizes and imports."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pytest

import demix

SRC = Path(__file__).resolve().parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))


@cache
def trees() -> dict[Path, ast.Module]:
    """Return what each file says; only the worker that runs these tests takes the time."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def classes() -> Counter[str]:
    """Count the definitions of each class."""
    nodes = (node for tree in trees().values() for node in tree.body)
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


def type_tests() -> Iterator[str]:
    """Yield each place that asks whether something is of one of our own classes."""
    own = set(classes()) - {"DemixError"}
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                if names & own:
                    yield f"{file.relative_to(SRC)}:{node.lineno} {names}"


def test_a_class_name_is_defined_once():
    assert [name for name, count in classes().items() if count > 1] == []


def test_objects_are_asked_rather_than_their_types():
    found = list(type_tests())
    assert len(found) <= 25, "\n".join(found)


def test_files_have_one_idea():
    lines = {file: file.read_text(encoding="utf-8").count("\n") for file in FILES}
    assert [str(file) for file, count in lines.items() if count > 400] == []
    assert 80 <= median(lines.values()) <= 160


def test_the_public_face_is_small_and_every_name_is_there():
    assert len(demix.__all__) <= 60
    for name in demix.__all__:
        assert getattr(demix, name).__doc__


def test_nothing_in_the_library_names_the_papers():
    """Neither in an import nor in a string; the commands alone load them."""
    for file, tree in trees().items():
        if file.relative_to(SRC / "demix").parts[0] not in ("papers", "cli"):
            texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
            assert not any("demix.papers" in text for text in texts if isinstance(text, str)), file


@pytest.mark.slow
def test_a_fit_loads_few_modules(demix, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    # What others wrote may be there already; the fit loads all that is ours anew.
    code = (
        "import sys\n"
        "for name in [name for name in sys.modules if name.split('.')[0] == 'demix']:\n"
        "    del sys.modules[name]\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "import demix.__main__\n"
        "try:\n    demix.__main__.main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "names = [name for name in sys.modules if name.split('.')[0] == 'demix']\n"
        "assert not any(name.startswith('demix.papers') for name in names)\n"
        "assert 'torch._dynamo' not in sys.modules\n"  # a compiler: seconds for nothing
        "print('loaded', len(names))\n"
    )
    done = demix.run_python(code, "fit", tmp_path / "x.npy", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert 50 <= int(done.stdout.split()[-1]) <= 110
