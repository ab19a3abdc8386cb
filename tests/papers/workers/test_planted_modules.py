"""Modules that somebody has put into the current folder are not run by processes we begin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import demix

# Named like modules that Python, multiprocessing and demix import.
NAMES = ("struct", "multiprocessing", "numpy", "signal", "pickle")
TRAP = "import os\nopen({place!r}, 'a').write(__name__)\nos._exit(66)\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder full of traps, which leave ``sprung`` beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(TRAP.format(place=str(tmp_path / "sprung")))
    return folder


def run(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a user does who has not set how Python finds modules."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=kept | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_command_with_processes_of_its_own_runs_none_of_them(folder, tmp_path):
    script = Path(sysconfig.get_path("scripts")) / "demix"
    command = [script, "render", "sprites", "--n", 512, "--size", 16, "--jobs", 2]
    done = run(folder, *command, "--out", tmp_path / "out")
    assert not (tmp_path / "sprung").exists()
    assert done.returncode == 0, done.stderr


def test_python_runs_none_of_them_for_demix(folder, tmp_path):
    for name in ("typer", "rich", "torch", "json"):
        (folder / f"{name}.py").write_text(TRAP.format(place=str(tmp_path / "sprung")))
    out = ["--out", tmp_path / "out"]
    done = run(folder, sys.executable, "-m", "demix", "render", "sprites", "--n", 2, *out)
    assert not (tmp_path / "sprung").exists()
    assert done.returncode == 0, done.stderr


def test_demix_runs_from_the_folder_in_which_it_lies(tmp_path):
    shutil.copytree(Path(demix.__file__).parent, tmp_path / "demix")
    done = run(tmp_path, sys.executable, "-m", "demix", "--version")
    assert done.stdout.strip() == f"demix {demix.__version__}", done.stderr


SCRIPT = """
import os
from beside import double
from demix.papers.workers.executors import Workers

def twice(x):
    return double(x)

if __name__ == "__main__":
    with Workers(2) as workers:
        assert [*workers.map(double, [1, 2])] == [*workers.map(twice, [1, 2])] == [2, 4]
    assert "PYTHONSAFEPATH" not in os.environ
"""


def test_a_script_of_a_user_finds_what_lies_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(tmp_path, sys.executable, "script.py")
    assert done.returncode == 0, done.stderr
