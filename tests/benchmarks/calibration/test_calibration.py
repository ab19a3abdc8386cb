"""Processes are what they say, and what was counted is summed up rightly."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration.processes import PROCESSES
from benchmarks.calibration.run import calibration_table, is_run, run_process, share, summary


def test_there_are_processes_of_every_kind():
    assert len({process.name for process in PROCESSES}) == len(PROCESSES)
    assert sum(process.kept for process in PROCESSES) >= len(PROCESSES) / 3
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
        "log-linear",
    }


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_a_process_draws_rows_factors_and_what_goes_beside(process):
    sample = process.draw(100, np.random.default_rng(0))
    assert len(sample.x) == len(sample.factors) == 100
    assert np.isfinite(sample.x).all()
    assert all(len(values) == 100 for values in sample.targets.values())
    again = process.draw(100, np.random.default_rng(0))
    assert np.array_equal(sample.x, again.x)


def made(process, breaks, verdicts, supported, truth, raw=0.8, kept=False):
    return {
        **{"process": process, "breaks": breaks, "verdicts": verdicts, "supported": supported},
        **{"truth": truth, "claimed": truth if supported == "affine" else None},
        **{"raw": raw, "kept": kept, "relied_on": "affine", "kind": "pairs"},
    }


def test_outcomes_detections_claims_and_power_are_counted():
    runs = [
        made("good", [], {"a": "pass"}, "affine", 0.99),
        made("good", [], {"a": "fail"}, "none", 0.97),
        made("good", [], {"a": "pass"}, "undecided", 0.5),
        made("bad", ["a"], {"a": "fail"}, "none", 0.6),
        made("bad", ["a"], {"a": "pass"}, "affine", 0.6),
        made("bad", ["a"], {"a": "warn"}, "affine", 0.98, raw=0.99),
    ]
    found = summary(runs)
    assert found["contradicted"]["good"]["share"] == pytest.approx(1 / 3)
    assert found["undecided"]["good"]["share"] == pytest.approx(1 / 3)
    assert found["detected"]["bad"]["share"] == pytest.approx(2 / 3)
    # Of three claims one recovers too little, and one no more than the observations show.
    assert (found["overstated"]["pairs"]["count"], found["overstated"]["pairs"]["of"]) == (2, 3)
    assert found["overstated"]["labels"]["of"] == 0
    assert (found["alarmed"]["count"], found["alarmed"]["of"]) == (1, 3)
    assert (found["power"]["count"], found["power"]["of"]) == (1, 2)
    table = calibration_table(runs)
    assert "| bad: a | 67 % | 2 of 3 | 9 to 99 % |" in table
    assert "| claims from pairs that are overstated | 67 % | 2 of 3 |" in table
    assert "Kept out" not in table


def test_intervals_are_exact():
    assert share([True] * 10)["low"] == pytest.approx(0.025 ** (1 / 10))
    assert share([False] * 10)["high"] == pytest.approx(1 - 0.025 ** (1 / 10))


@pytest.mark.usefixtures("few_draws")
def test_a_run_is_plain_data(monkeypatch):
    """After a training that is cut short: four classes are too few whatever is learnt."""
    monkeypatch.setattr("demix.estimators.base.Demixer._most_steps", 30)
    (process,) = [p for p in PROCESSES if p.name == "too few classes"]
    run = run_process(process, 100, rows=400)
    assert run["verdicts"]["generator system"] == "fail"
    assert (run["supported"] in ("none", "undecided")) == (run["claimed"] is None)
    assert is_run({**run, "seconds": 1.0})
    assert not is_run({**run, "seconds": 1.0, "claimed": 0.5})
