"""The wheel, installed without development tools, does the main jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import demix
from command import BRIEF, BRIEF_ROWS, EACH, FEWER

ROOT = Path(__file__).resolve().parents[1]


def needed(name: str, extras: tuple[str, ...] = ("",)) -> dict[str, Distribution]:
    """Return what an installed distribution needs at run time, without optional parts."""
    found: dict[str, Distribution] = {}
    todo = [(name, extras)]
    while todo:
        name, extras = todo.pop()
        for text in distribution(name).requires or []:
            wanted = Requirement(text)
            holds = wanted.marker is None or any(
                wanted.marker.evaluate({"extra": e}) for e in extras
            )
            if holds and wanted.name not in found:
                found[wanted.name] = distribution(wanted.name)
                todo.append((wanted.name, ("", *wanted.extras)))
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """A virtual environment with the wheel and the files of what it needs; nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    place = folder / "env"
    venv.create(place, with_pip=False)
    (target,) = place.glob("lib/python*/site-packages")
    for found in needed("demix-ica").values():
        for file in found.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                copy = target / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                os.link(file.locate(), copy)
                # Byte code of the same file, where there is some, need not be made again.
                code = Path(cache_from_source(str(file.locate())))
                if file.suffix == ".py" and code.exists():
                    (copy.parent / code.parent.name).mkdir(exist_ok=True)
                    os.link(code, copy.parent / code.parent.name / code.name)
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), *install]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=120)
    return place / "bin" / "demix"


# An eighth of the steps of the demo: enough for a wheel to show that it learns. Of the fit and of
# chance nothing is asked.
SHORT = f"""{BRIEF}{BRIEF_ROWS}{FEWER}
import demix
whole = demix.Recipe
demix.Recipe = lambda steps: whole(steps=steps // 8)
"""


@pytest.fixture(scope="module")
def compiler(clean) -> Path:
    """A real compiler that takes a second for the kernel in the wheel, not six."""
    plain = clean.parents[2] / "cc"
    plain.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O1\n')
    plain.chmod(0o755)
    return plain


def run(clean: Path, folder: Path, *command: object, **more: str) -> str:
    kept = {"PATH": os.environ["PATH"], "HOME": str(clean.parents[2]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=kept | more,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def done(clean, compiler, tmp_path_factory) -> Path:
    """A folder in which the main jobs were done, in one process that imports everything once."""
    folder = tmp_path_factory.mktemp("jobs")
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 800))
    np.save(folder / "x.npy", np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1))
    jobs = [
        ["demo", "--out", "demo"],
        ["fit", "x.npy", "--n-latents", "2", "--out", "model"],
        ["checkup", "model", "x.npy", "--out", "check", "--no-refits"],
        ["reproduce", "clica-table1", "--rows", "2", "--scale", "smoke", "--out", "t"],
    ]
    python = [clean.with_name("python"), "-c", SHORT + EACH, json.dumps(jobs)]
    told = run(clean, folder, *python, CC=str(compiler))
    assert [code for code, _, _ in json.loads(told)] == [0, 0, 0, 0], told
    return folder


def test_there_are_no_tools_of_developers(clean, tmp_path):
    target = next((clean.parents[1] / "lib").glob("python*/site-packages"))
    names = {path.name for path in target.iterdir()}
    assert "demix" in names
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "mkdocs", "benchmarks", "faults"}
    assert demix.__version__ in run(clean, tmp_path, clean, "--version")


@pytest.mark.slow
def test_the_demo_runs(done):
    assert json.loads((done / "demo" / "scores.json").read_text())["r2"] > 0.9


@pytest.mark.slow
def test_a_fit_and_its_check_up_run(done):
    found = json.loads((done / "check" / "checkup.json").read_text())
    assert found["checks"]
    assert "supported" in found


@pytest.mark.slow
def test_a_row_of_a_paper_runs(done):
    (record,) = json.loads((done / "t" / "results.json").read_text())
    assert record["row"] == 2
