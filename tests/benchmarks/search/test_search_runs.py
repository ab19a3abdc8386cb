"""Runs of the search are kept, not repeated, merged and tabulated."""

from __future__ import annotations

import json

import pytest

from benchmarks.search import __main__ as command
from benchmarks.search import measure, store
from benchmarks.search.measure import run_variant
from benchmarks.search.table import error, table
from benchmarks.search.variants import VARIANTS
from demix._support.errors import DemixError
from demix.papers.runner.scales import Scale

TINY = Scale("laptop", dim=3, draws=50)


def record(variant: str, score: float | None, row: int = 2, **changes):
    return {
        "experiment": "clica-table1",
        "row": row,
        "variant": variant,
        "factor": VARIANTS[variant].factor,
        "seed": 100,
        "budget": 1.0,
        "steps": 600,
        "cost": 1.0,
        "score": score,
        "seconds": 1.0,
        "failure": None,
        "provenance": {"commit": "0123456789abcdef"},
    } | changes


@pytest.fixture
def one_step(monkeypatch):
    monkeypatch.setattr(measure, "_USUAL_STEPS", 1)
    monkeypatch.setattr(measure, "_WARM_UP", 0)
    monkeypatch.setattr(measure, "_MEASURED", 1)
    monkeypatch.setattr(measure, "_SAMPLES", 200)
    monkeypatch.setattr(command, "scale_named", lambda name: TINY)


def test_a_run_records_steps_cost_and_both_scores(one_step):
    found = run_variant("clica-table2", 1, VARIANTS["width-32"], seed=100, budget=2.0, scale=TINY)
    assert found["steps"] == max(1, round(2 / found["cost"]))
    assert found["score"] == found["mcc"] != found["r2"]
    assert found["failure"] is None


def test_a_variant_that_changes_nothing_is_not_run(one_step):
    same = VARIANTS["group-1024"]
    assert run_variant("clica-table2", 1, same, seed=100, budget=1.0, scale=TINY) is None


def test_a_run_that_diverges_is_a_result(one_step, monkeypatch):
    def diverge(*_):
        raise DemixError("The loss became nan at step 1.")

    monkeypatch.setattr(measure.Trainer, "step", diverge)
    found = run_variant("clica-table2", 1, VARIANTS["tanh"], seed=100, budget=1.0, scale=TINY)
    assert found["score"] is None
    assert "nan" in found["failure"]


def test_finished_runs_are_skipped_and_parts_are_merged(one_step, tmp_path, capsys):
    asked = ["--rows", "t1:2,t2:1", "--variants", "baseline,relu", "--out", str(tmp_path)]
    for part in ("1/2", "2/2"):
        command.run(command.arguments([*asked, "--part", part]))
    assert {path.name for path in tmp_path.iterdir()} == {"search.1.json", "search.2.json"}
    assert capsys.readouterr().out.count("\n") == 4
    assert store.merge(tmp_path) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["search.json"]
    command.run(command.arguments(asked))
    assert capsys.readouterr().out == ""
    command.run(command.arguments([*asked, "--budget", "2"]))
    assert capsys.readouterr().out.count("\n") == 4
    command.write_table(tmp_path)
    assert "### Budget 2" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_files_of_others_beside_runs_stay(tmp_path):
    for name in ("search.json", "search.1.json", "search-mine.json", "table.md"):
        (tmp_path / name).write_text(json.dumps([record("baseline", 0.5)]))
    assert store.merge(tmp_path) == 1
    assert not (tmp_path / "search.1.json").exists()
    assert (tmp_path / "search-mine.json").exists()
    with pytest.raises(DemixError, match=r"table\.md holds something else"):
        command.write_table(tmp_path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--rows", "t1:11"], "among"),
        (["--seeds", "100,1"], "final tables"),
        (["--variants", "nonsense"], "nonsense"),
        (["--part", "3/2"], "3/2"),
        (["--part", "x"], "K/N"),
        (["--seeds", "x"], "whole numbers"),
    ],
)
def test_what_the_search_must_not_see_is_refused(given, words):
    with pytest.raises(DemixError, match=words):
        command.jobs(command.arguments(given))


def test_parts_share_all_runs_and_the_slowest_row():
    whole = command.jobs(command.arguments([]))
    parts = [command.jobs(command.arguments(["--part", f"{k}/2"])) for k in (1, 2)]
    assert sorted(map(str, whole)) == sorted(map(str, parts[0] + parts[1]))
    slow = [sum(job[:2] == ("clica-table1", 1) for job in part) for part in parts]
    assert abs(slow[0] - slow[1]) <= 1


def test_the_error_is_the_geometric_mean_of_what_is_left_unexplained():
    base = [record("baseline", 0.9, 1), record("baseline", 0.99, 2)]
    found = [record("relu", 0.8, 1), record("relu", 0.995, 2)]
    assert error(found, base) == pytest.approx(1.0)
    assert error([record("relu", None, 1)], base) == float("inf")


def test_the_table_marks_the_best_of_a_factor_and_names_the_command():
    runs = [record("baseline", 0.9), record("relu", 0.95, cost=0.8), record("tanh", 0.85)]
    runs += [record("elu", None, failure="nan"), record("again-1", 0.91)]
    page = table(runs)
    assert "| **relu** | 95.00 (+5.00) | 0.80 | **0.50** |" in page
    assert "| tanh | 85.00 (-5.00) | 1.00 | 1.50 |" in page
    assert "| elu | failed | 1.00 | – |" in page
    assert "**again-1**" not in page
    assert "--rows t1:2 --variants baseline,relu,tanh,elu,again-1 --seeds 100 --budget 1`" in page


def test_the_command_of_a_final_check_allows_the_rows_held_back():
    assert "--rows t1:11 --held-back --variants" in table([record("baseline", 0.9, 11)])
