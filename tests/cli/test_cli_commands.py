"""Every command explains itself, and what it is given wrongly it refuses in one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import run_demix
from demix import papers
from demix.papers.experiments import EXPERIMENTS

COMMANDS = ["demo", "list", "reproduce", "download", "evaluate", "fit", "consensus", "transform"]
COMMANDS += ["report", "compare", "export", "checkup", "render", "probe"]


def test_help_shows_an_example(demix):
    helps = demix.run_each([command, "--help"] for command in COMMANDS)
    for command, done in zip(COMMANDS, helps, strict=True):
        assert done.returncode == 0
        assert f"Example:  demix {command} " in done.stdout


def test_help_lists_every_command_and_says_how_to_start():
    done = run_demix("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b +[A-Z]", done.stdout)
    assert "demix demo --out demo-output" in done.stdout
    assert run_demix("-h").stdout == done.stdout
    assert run_demix().stdout.strip() == done.stdout.strip()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["reproduce", "--help"], ["list"]], ids=str
)
def test_help_version_and_list_do_not_wait_for_torch(arguments):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "demix", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, flags=re.MULTILINE))
    assert "typer" in imported
    heavy = {"onnx", "torch", "numpy", "scipy", "sklearn", "plotly", "matplotlib", "jinja2"}
    assert not imported & heavy


def test_the_version_is_that_of_the_package(demix):
    from demix import __version__

    assert demix.run("--version").stdout == f"demix {__version__}\n"


def test_the_list_has_every_row_for_eyes_and_for_programs(demix):
    shown = demix.run("list")
    assert shown.returncode == 0
    listing = json.loads(demix.run("list", "--json").stdout)
    counts = {experiment["name"]: len(experiment["rows"]) for experiment in listing}
    assert counts == {
        "clica-table1": 12,
        "clica-table2": 10,
        "clica-kitti": 10,
        "clica-3dident": 5,
        "clica-marginal": 7,
        "clica-any": 4,
        "ce-diet": 10,
        "ce-supervised": 12,
        "ce-cluster-vectors": 3,
        "ce-gennorm": 20,
        "ce-batch-clusters-tails": 36,
        "ce-label-noise": 7,
        "ce-dislib": 11,
        "ce-imagenetx": 17,
        "genealogy": 5,
    }
    for name in counts:
        assert name in shown.stdout
    assert "99.42" in shown.stdout
    first = listing[0]["rows"][0]
    assert first == {
        "row": 1,
        "space": "sphere",
        "marginal": "Uniform",
        "conditional": "vMF(κ=1)",
        "model_space": "sphere",
        "similarity": "dot",
        "laptop": "Laptop(scale=1.0, steps=4000, batch=8192, within=256)",
        "narrow": False,
        "matched": True,
        "models": ["identity", "supervised", "unsupervised"],
        "columns": {
            "process": "Sphere: Uniform, vMF(κ=1)",
            "model": "Sphere: vMF",
            "matched": "yes",
            "objective": "InfoNCE",
        },
        "paper": ["99.42"],
    }


def test_the_list_is_that_of_the_experiments():
    listed = json.loads((Path(papers.__file__).parent / "listing.json").read_text(encoding="utf-8"))
    assert listed == json.loads(json.dumps([one.listing() for one in EXPERIMENTS.values()]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clica-table9"], "Unknown experiment 'clica-table9'; known are clica-table1"),
        (["clica-table1", "--scale", "huge"], "Unknown scale 'huge'; known are smoke"),
        (["clica-table1", "--rows", "13"], "clica-table1 has rows 1 to 12, but got 13."),
    ],
    ids=str,
)
def test_what_there_is_not_is_refused_with_what_there_is(demix, tmp_path, arguments, words):
    assert words in demix.refusal("reproduce", *arguments, "--out", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", ["one", "1,7-5", "1-999999999", "1-9" + 30 * "9", "1-9999,1,2"])
def test_rows_that_are_no_numbers_or_too_many_are_refused(demix, tmp_path, rows):
    options = ["--rows", rows, "--scale", "smoke", "--out", tmp_path / "new"]
    told = demix.refusal("reproduce", "clica-table1", *options)
    words = "--rows takes whole numbers such as 1,2,5-7, at most 10000 of them, but got"
    assert f"{words} {rows!r}." in told
    assert list(tmp_path.iterdir()) == []


def test_a_seed_that_is_none_is_refused(demix, tmp_path):
    told = demix.refusal("demo", "--seed", "-1", "--out", tmp_path / "new")
    assert "A seed must be a whole number from 0" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["dem"], ["evaluate"], ["demo", "--sed", "1"]], ids=str)
def test_a_slip_of_the_fingers_ends_with_usage_and_code_2(demix, arguments):
    done = demix.run(*arguments)
    assert done.returncode == 2
    assert "Usage:" in done.stderr
    assert "Traceback" not in done.stderr
