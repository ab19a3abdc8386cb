"""The fair fight without the packages that its data come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real.methods import LINEAR, OURS, PEERS, latents_file
from benchmarks.real.run import cells_of, key, missing, read_results, run_cells
from benchmarks.real.scoring import agreement, read_outs
from benchmarks.real.sets import SETS, TUNED_ON
from benchmarks.real.sets.molecules import _aligned, _torsions
from benchmarks.real.table import bars, real_table
from benchmarks.real.task import Dataset, Task, angles, seen_through_net, windows
from demix._support.errors import DemixError
from demix.papers.workers.executors import SerialExecutor

RESULTS = Path(__file__).resolve().parents[3] / "results" / "real"


def outcome(name, method, score, *, seed=0, agree=None):
    factors = {"hour": {"linear": score, "knn": score}}
    return {
        "set": name,
        "method": method,
        "seed": seed,
        "scores": factors,
        "seconds": 2.0,
        "processor": 1.0,
        "agreement": {} if agree is None else {"0": agree},
        "commit": "0" * 40,
    } | ({"supported": "affine"} if method == OURS else {})


def test_read_outs_score_rows_that_were_not_fitted():
    random = np.random.default_rng(0)
    z = random.normal(size=(1000, 2)).astype(np.float32)
    late = z.copy()
    late[800:] = random.normal(size=(200, 2))  # factors that latents say nothing of
    classes = (z[:, 0] > 0).astype(np.int64)
    task = Task(z, {"known": z, "late": late, "class": classes}, 2)
    scores = read_outs(task, z)
    assert scores["known"]["linear"] == pytest.approx(1)
    assert 0.9 < scores["known"]["knn"] < 1
    assert scores["late"]["linear"] < 0
    assert scores["class"]["linear"] > 0.95
    assert scores["class"]["knn"] > 0.95


def test_seeds_agree_up_to_a_linear_map():
    z = np.random.default_rng(0).normal(size=(400, 3))
    assert agreement(z, z @ np.random.default_rng(1).normal(size=(3, 3))) == pytest.approx(1)
    assert agreement(z, z[:, ::-1] ** 2) < 0.5


def test_frames_are_aligned_and_torsions_are_signed():
    square = np.array([[1.0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 1]])
    assert _torsions(square[None], [(0, 1, 2, 3)])[0, 0] == pytest.approx(-np.pi / 2)
    mirrored = square * [1, 1, -1]
    turn = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    aligned = _aligned(np.stack([square, square @ turn + 5, mirrored]))
    assert aligned[1] == pytest.approx(aligned[0], abs=1e-6)
    assert not np.allclose(aligned[2], aligned[0], atol=0.1)


def test_windows_hold_the_last_moments():
    found = windows(np.arange(5.0)[:, None], 3)
    assert found.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert angles(np.array([0, np.pi / 2])) == pytest.approx(np.array([[1, 0], [0, 1]]), abs=1e-6)
    states = np.random.default_rng(0).normal(size=(50, 2))
    assert (seen_through_net(states, 7, 1) == seen_through_net(states, 7, 1)).all()


def test_data_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        rows = np.ones((10, 2), np.float32)
        return Task(rows, {"hour": rows[:, :1]}, 2, lag=3, view=rows * 2)

    dataset = Dataset("few rows", "views", "ten rows", make)
    first, second = dataset.load(tmp_path), dataset.load(tmp_path)
    assert len(made) == 1
    assert (second.view == 2).all()
    assert (second.lag, second.labels, second.factors.keys()) == (3, None, {"hour": 0}.keys())
    assert (first.x == second.x).all()


def test_a_run_continues_and_survives_a_peer(tmp_path):
    asked = []

    def run_one(cell, cache):
        name, method, seed = cell
        asked.append((method, seed))
        if method == "CEBRA":
            raise DemixError("CEBRA on temperatures failed: no such module.")
        file = latents_file(cache, cell)
        file.parent.mkdir(exist_ok=True)
        np.save(file, np.random.default_rng(0).normal(size=(50, 2)))
        kept = outcome(name, method, 0.5, seed=seed)
        about = {"shape": [50, 2], "n_latents": 2, "lag": 1}
        return {k: kept[k] for k in ("scores", "seconds", "processor")} | {"task": about}

    cells = cells_of(["temperatures"], ["TICA", "CEBRA"], [0, 1])
    here = SerialExecutor()
    list(run_cells(cells[:1], tmp_path, tmp_path, here, run_one))
    todo = missing(cells, read_results(tmp_path)["outcomes"], tmp_path)
    assert todo == cells[1:]
    list(run_cells(todo, tmp_path, tmp_path, here, run_one))
    data = read_results(tmp_path)
    assert asked == [(method, seed) for seed in (0, 1) for method in ("TICA", "CEBRA")]
    assert {key(run) for run in data["outcomes"]} == set(cells)
    assert data["outcomes"][1]["agreement"] == {"0": pytest.approx(1)}
    assert "no such module" in (tmp_path / "table.md").read_text()
    assert missing(cells, data["outcomes"], tmp_path) == [cells[1], cells[3]]

    # A seed that is run again, here with other latents, agrees anew with later ones.
    def run_other(cell, cache):
        found = run_one(cell, cache)
        np.save(latents_file(cache, cell), np.random.default_rng(1).normal(size=(50, 2)))
        return found

    list(run_cells(cells[:1], tmp_path, tmp_path, here, run_other))
    assert read_results(tmp_path)["outcomes"][1]["agreement"]["0"] < 0.5
    # Without the latents of other seeds their agreement could not be told.
    latents_file(tmp_path, cells[0]).unlink()
    more = cells_of(["temperatures"], ["TICA"], [0, 1, 2])
    assert [seed for _, _, seed in missing(more, data["outcomes"], tmp_path)] == [0, 2]


def test_the_bars_count_sets():
    runs = [
        outcome("temperatures", OURS, 0.70, agree=0.8),
        outcome("temperatures", LINEAR, 0.71, agree=1.0),
        outcome("temperatures", "TICA", 0.71, agree=1.0),
        outcome("electricity", OURS, 0.70, agree=0.95),
        outcome("electricity", LINEAR, 0.73, agree=1.0),
        outcome("electricity", "TICA", 0.5, agree=0.99),
        outcome("electricity", "CEBRA", 0.9, agree=0.7),
    ]
    found = bars(runs)
    assert found["best"] == {"count": 1, "of": 2, "missing": ["electricity"]}
    assert found["linear"] == {"count": 1, "of": 2, "missing": ["electricity"]}
    assert found["agreement"] == {"count": 1, "of": 2, "missing": ["temperatures"]}
    text = real_table({"outcomes": runs, "sets": {}, "provenance": {"torch": "2"}})
    assert text.startswith("### The bars\n")
    assert "On 1 of 2 sets demix is at or above the best peer" in text
    assert "| electricity: hour | 0.700 | 0.900 (CEBRA) | 0.730 |" in text


def test_no_bar_asks_for_a_nuisance():
    runs = [outcome("rotated digits", OURS, 0.9), outcome("rotated digits", "PCA", 0.9)]
    for run, score in zip(runs, (0.1, 0.8), strict=True):
        run["scores"] = {
            "class": run["scores"]["hour"],
            "angle": {"linear": score, "knn": score},
        }
    assert bars(runs)["best"] == {"count": 1, "of": 1, "missing": []}
    runs[0]["scores"]["class"] = {"linear": 0.9, "knn": 0.87}
    assert bars(runs)["best"]["missing"] == ["rotated digits"]


def test_every_set_has_methods_and_all_kinds_are_there():
    assert len(SETS) >= 8
    assert {dataset.kind for dataset in SETS.values()} == set(PEERS)
    assert not set(SETS) & set(TUNED_ON)


@pytest.mark.skipif(not (RESULTS / "real.json").exists(), reason="nothing was measured yet")
def test_the_committed_table_is_that_of_the_committed_outcomes():
    data = json.loads((RESULTS / "real.json").read_text(encoding="utf-8"))
    assert real_table(data) == (RESULTS / "table.md").read_text(encoding="utf-8")
    assert data["bars"] == bars(data["outcomes"])
