"""A calibration that was forged or damaged is refused before hours of work are put into it."""

from __future__ import annotations

import json
import os

import pytest

from benchmarks.calibration import command
from benchmarks.calibration.run import calibration_table
from demix import DemixError

FIRST = {
    **{"process": "sphere, vMF", "seed": 0, "kept": False, "breaks": [], "kind": "pairs"},
    **{"verdicts": {"shape": "pass"}, "statistics": {"shape": 0.1}},
    **{"supported": "orthogonal", "relied_on": "orthogonal"},
    **{"truth": 0.99, "claimed": 0.99, "raw": 0.8, "seconds": 20.5},
}
BROKEN = {
    **{"process": "wrong shape", "seed": 3, "kept": False, "breaks": ["shape"], "kind": "pairs"},
    **{"verdicts": {"shape": "fail"}, "statistics": {"shape": 0.9}},
    **{"supported": "none", "relied_on": "orthogonal"},
    **{"truth": 0.97, "claimed": None, "raw": 0.8, "seconds": 21.5},
}
DATA = {
    "runs": [FIRST, BROKEN],
    "provenance": {"command": "python -m benchmarks.calibration"},
}


def calibrate(folder):
    """Ask for a run that the folder holds."""
    command.calibrate(folder, str(FIRST["seed"]), 1, FIRST["process"])


def write(folder, **changes):
    file = folder / "calibration.json"
    file.write_text(json.dumps(DATA | changes))
    return file


def test_a_real_one_is_taken(tmp_path):
    write(tmp_path)
    calibrate(tmp_path)
    found = json.loads((tmp_path / "calibration.json").read_text())
    assert found["runs"] == DATA["runs"]
    assert (tmp_path / "table.md").read_text() == calibration_table(DATA["runs"])


@pytest.mark.parametrize(
    "change",
    [
        {"process": "sphere"},
        {"process": 7},
        {"process": ["sphere, vMF"]},
        {"seed": "0"},
        {"seed": True},
        {"seed": -1},
        {"seed": None},
        {"kept": 0},
        {"kept": True},
        {"breaks": None},
        {"breaks": ["marginal"]},
        {"breaks": [["marginal"]]},
        {"kind": "rows"},
        {"verdicts": []},
        {"verdicts": FIRST["verdicts"] | {"shape": "good"}},
        {"verdicts": FIRST["verdicts"] | {"shape": ["fail"]}},
        {"verdicts": {}},
        {"statistics": None},
        {"statistics": FIRST["statistics"] | {"shape": "small"}},
        {"statistics": FIRST["statistics"] | {"shape": float("nan")}},
        {"supported": "all"},
        {"supported": ["affine"]},
        {"supported": "none"},
        {"relied_on": {}},
        {"truth": "0.99"},
        {"truth": float("nan")},
        {"truth": float("-inf")},
        {"truth": 10**400},
        {"truth": None},
        {"truth": ""},
        {"claimed": None},
        {"claimed": "0.99"},
        {"raw": None},
        {"seconds": None},
        {"seconds": float("inf")},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_run_that_is_none_is_refused(tmp_path, change):
    before = write(tmp_path, runs=[BROKEN, FIRST | change]).read_bytes()
    with pytest.raises(DemixError, match=r"^Expected runs .*, but it is damaged .* new folder\.$"):
        calibrate(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"calibration.json"}
    assert (tmp_path / "calibration.json").read_bytes() == before


@pytest.mark.parametrize("key", FIRST)
def test_a_run_that_lacks_something_is_refused(tmp_path, key):
    write(tmp_path, runs=[{name: value for name, value in FIRST.items() if name != key}])
    with pytest.raises(DemixError, match="is damaged"):
        calibrate(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [{"runs": None}, {"runs": {}}, {"runs": [1]}, {"runs": "ab"}],
    ids=str,
)
def test_runs_that_are_none_are_refused(tmp_path, changes):
    write(tmp_path, **changes)
    with pytest.raises(DemixError, match="is damaged"):
        calibrate(tmp_path)


def test_a_seed_that_is_none_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DemixError, match="A seed must be a whole number"):
        command.calibrate(tmp_path / "new", f"0,{2**40}", 1, None)
    assert not (tmp_path / "new").exists()


def test_a_pipe_in_its_place_is_refused(tmp_path):
    os.mkfifo(tmp_path / "calibration.json")
    with pytest.raises(DemixError, match="holds something else"):
        calibrate(tmp_path)


def test_a_run_counts_once(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_run", lambda cell: pytest.fail("it is there already"))
    write(tmp_path)
    command.calibrate(tmp_path, f"{FIRST['seed']},{FIRST['seed']}", 1, FIRST["process"])
    cells = []

    def completed(workers, run, asked):
        cells.extend(asked)
        return ()

    monkeypatch.setattr(command, "completed", completed)
    name = FIRST["process"]
    command.calibrate(tmp_path / "new", "0,0", 1, f"{name};{name}")
    assert cells == [(name, 0)]
    write(tmp_path, runs=[FIRST, FIRST])
    with pytest.raises(DemixError, match="is damaged"):
        calibrate(tmp_path)


def test_a_table_of_others_stays_and_no_jobs_leave_nothing(tmp_path):
    write(tmp_path)
    (tmp_path / "table.md").write_text("precious")
    with pytest.raises(DemixError, match=r"table\.md holds something else"):
        calibrate(tmp_path)
    assert (tmp_path / "table.md").read_text() == "precious"
    with pytest.raises(DemixError, match="--jobs must be at least 1, but got 0"):
        command.calibrate(tmp_path / "new", "0", 0, None)
    assert not (tmp_path / "new").exists()
