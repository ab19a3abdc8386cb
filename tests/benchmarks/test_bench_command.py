"""`python -m benchmarks` measures every section and shows it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import everyday
from benchmarks.estimators import FAST_ICA, OURS, fit_one
from benchmarks.sizes import QUICK
from benchmarks.suite import SECTIONS
from benchmarks.sweeps import sweep
from benchmarks.tables import tables_of
from command import one_sentence
from demix import DemixError

BENCH = "import runpy; runpy.run_module('benchmarks', run_name='__main__')"
# Memory is measured in processes without the seconds of importing; test_bench_timing.py has it
# measured in new ones.
FORKED = """
import multiprocessing
import benchmarks.memory

def run_module(name, task, **more):
    assert name == "benchmarks.memory"
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return str(pool.apply(benchmarks.memory._measure, [task]))

benchmarks.memory.run_module = run_module
"""


def refusal(demix, *arguments) -> str:
    return one_sentence(demix.run_python(BENCH, *arguments))


@pytest.mark.slow
def test_a_quick_run_has_every_section_and_bar(demix, tmp_path):
    file = tmp_path / "bench.json"
    quick = [
        name for name in SECTIONS if name not in ("estimators", "everyday", "sweep", "distributed")
    ]
    options = ["--quick", "--json", file, "--sections", ",".join(quick)]
    done = demix.run_python(FORKED + BENCH, *options)
    assert done.returncode == 0, done.stderr
    data = json.loads(file.read_text(encoding="utf-8"))

    assert set(quick) < set(data)
    assert data["size"] == "quick"
    assert data["provenance"]["threads"] == 1
    assert {entry["title"] for entry in data["contrast"]["entries"]} == {
        "dot product",
        "L1",
        "L2²",
        "L3³",
    }
    assert [(entry["experiment"], entry["row"]) for entry in data["step"]["entries"]] == [
        ("clica-table1", 2),
        ("clica-table2", 1),
    ]
    assert [entry["target"] for entry in data["convergence"]["entries"]] == [99.0, 99.86, 98.62]
    assert [entry["batch"] for entry in data["contrast"]["large"]] == [256]
    assert set(data["scaling"]["curves"]) == {"batch", "latents", "width"}
    assert len(data["bars"]) == 14
    assert {bar["met"] for bar in data["bars"]} == {None}

    for table in tables_of(data).values():
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)
        assert table.title.split(",")[0] in done.stdout
    assert f"Wrote {file}" in done.stdout


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_estimators_are_fitted_to_the_same_series(tmp_path):
    """In one process here, and with one seed; in a run each fit has a process of its own."""
    runs = []
    for method in (OURS, FAST_ICA):
        file = tmp_path / "latents.npy"
        run = fit_one(json.dumps(["walk on a sphere", method, 0, 300, 20, None, str(file)]))
        assert np.load(file).shape == (75, 5)
        assert run["r2"] < 1
        runs.append({"data": "walk on a sphere", "method": method, "consistency": None, **run})
    section = {"rows": 300, "seeds": [0], "entries": runs}
    table = tables_of({"estimators": section})["estimators"]
    assert [row[1] for row in table.rows] == [OURS, FAST_ICA]


def test_a_default_step_takes_longer_than_its_parts(monkeypatch):
    """Its fits are left out, which run in processes of their own."""
    monkeypatch.setattr(everyday, "_fit_seconds", lambda _: 1.0)
    monkeypatch.setattr(everyday, "_SETTLE", 0.0)
    section = everyday.measure_everyday(QUICK, lambda _: None)
    assert section["fit"] == {"alone": 1.0, "beside": 1.0, "slower": 1.0}
    assert section["share"] > 0.5
    assert len(tables_of({"everyday": section})["everyday"].rows) == 5


def test_a_sweep_is_a_reproduction_of_short_cells(tmp_path):
    """In this process here; in a run each sweep is a command of its own."""
    sweep(0, 2, 1, str(tmp_path))
    records = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert [(r["row"], r["seed"], r["steps"]) for r in records] == [(2, 0, 1), (2, 1, 1)]
    assert {r["provenance"]["threads"] for r in records} == {1}
    seconds = {"one process": 20.0, "workers": 11.0}
    section = {"cells": 2, "workers": 2, "seconds": seconds, "share": 0.55}
    table = tables_of({"sweep": section})["sweep"]
    assert table.rows == [["one process", "20 s", "1"], ["2 workers", "11 s", "0.55"]]


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(demix, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for target in (blocked / "bench.json", tmp_path):
        said = refusal(demix, "--quick", "--json", target)
        assert "--json must name a new .json file in an existing folder" in said
    (tmp_path / "mine.json").write_text("{}")
    for more in ([], ["--overwrite"]):
        refusal(demix, "--quick", "--json", tmp_path / "mine.json", *more)
    assert (tmp_path / "mine.json").read_text() == "{}"


def test_a_file_that_came_while_it_measured_stays(tmp_path, monkeypatch):
    file = tmp_path / "mine.json"
    monkeypatch.setattr(command, "run_suite", lambda *_: file.write_text("{}"))
    monkeypatch.setattr(command, "tables_of", lambda _: {})
    with pytest.raises(DemixError, match=r"mine\.json holds something else"):
        command.bench(file, quick=True)
    assert file.read_text() == "{}"
