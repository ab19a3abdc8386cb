"""Processes are what they say, and what was counted is summed up rightly."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration.processes import PROCESSES
from benchmarks.calibration.run import calibration_table, run_process, share, summary


def test_there_are_processes_of_every_kind():
    assert len({process.name for process in PROCESSES}) == len(PROCESSES)
    assert sum(process.kept for process in PROCESSES) == 10
    broken = {name for process in PROCESSES for name in process.breaks}
    assert broken >= {
        "marginal",
        "isotropy",
        "support",
        "shape",
        "position",
        "injectivity",
        "too few latents",
        "too many latents",
        "positives informative",
        "generator system",
        "label noise",
    }


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_a_process_draws_rows_factors_and_what_goes_beside(process):
    sample = process.draw(300, np.random.default_rng(0))
    assert len(sample.x) == len(sample.factors) == 300
    assert np.isfinite(sample.x).all()
    assert all(len(values) == 300 for values in sample.targets.values())
    again = process.draw(300, np.random.default_rng(0))
    assert np.array_equal(sample.x, again.x)


def made(process, breaks, verdicts, truth, kept=False):
    return {
        "process": process,
        "breaks": breaks,
        "verdicts": verdicts,
        "supported": "none" if truth is None else "affine",
        "truth": truth,
        "kept": kept,
    }


def test_alarms_detections_and_overstatements_are_counted():
    runs = [
        made("good", [], {"a": "pass", "b": "warn"}, 0.99),
        made("good", [], {"a": "pass", "b": "skipped"}, 0.5),
        made("bad", ["a"], {"a": "fail", "b": "pass"}, None),
        made("bad", ["a"], {"a": "pass", "b": "fail"}, None),
    ]
    found = summary(runs)
    assert {name: s["share"] for name, s in found["false alarms"].items()} == {"a": 0, "b": 1}
    assert found["false alarms"]["b"]["of"] == 1
    assert found["detected"]["bad"]["share"] == 0.5
    assert found["supported"]["good"]["share"] == 1
    assert found["overstated"]["count"] == 1
    table = calibration_table(runs)
    assert "| bad: a | 50 % | 1 of 2 | 1 to 99 % |" in table
    assert "| all together | 33 % | 1 of 3 |" in table  # of false alarms
    assert "Kept out" not in table


def test_intervals_are_exact():
    assert share([True] * 10)["low"] == pytest.approx(0.025 ** (1 / 10))
    assert share([False] * 10)["high"] == pytest.approx(1 - 0.025 ** (1 / 10))


@pytest.mark.slow
def test_a_run_is_plain_data():
    (process,) = [p for p in PROCESSES if p.name == "too few classes"]
    run = run_process(process, 100, rows=800)
    assert run["verdicts"]["generator system"] == "fail"
    assert (run["supported"], run["truth"]) == ("none", None)
