"""Commands on two ranks of torchrun: the work of one process, and a rank that is killed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parent / "torchrun_case.py"
EXPERIMENT = ["reproduce", "clica-table1", "--rows", "2", "--scale", "smoke", "--out"]


@pytest.fixture(scope="module")
def done(demix, ranks_code, tmp_path_factory):
    """All commands, one after the other, on two ranks."""
    folder = tmp_path_factory.mktemp("torchrun")
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 400))
    x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    np.save(folder / "x.npy", x.astype(np.float32))
    fit = ["fit", str(folder / "x.npy"), "--n-latents", "2", "--out"]
    job = folder / "damaged" / "unfinished" / "2-0-unsupervised"
    job.mkdir(parents=True)
    (job / "checkpoint.safetensors").write_bytes(bytes(8) + b'{"__metadata__":{"demix":')
    (folder / "damaged" / "results.json").write_text("[]")
    plan = [
        ([*fit, str(folder / "whole")], None),
        ([*fit, str(folder / "cut")], str(folder / "cut" / "checkpoint.safetensors")),
        ([*EXPERIMENT, str(folder / "table")], None),
        ([*EXPERIMENT, str(folder / "damaged")], None),
        (["report", str(folder / "whole")], None),
    ]
    told = demix.run_python(ranks_code(PROGRAM, plan))
    assert told.returncode == 0, told.stderr
    return folder, told


@pytest.mark.slow
def test_a_killed_rank_is_started_again_and_the_fit_ends_with_the_same_bits(done):
    folder, told = done
    # Rank 0 may be ended by the agent before it can say that it has lost the other.
    assert told.stderr.count("rank 1 dies") == 1
    for name in ("model.safetensors", "latents.npy"):
        assert (folder / "cut" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    left = {"fit.json", "latents.npy", "model.json", "model.safetensors", "report.html"}
    for fitted in ("cut", "whole"):
        assert {file.name for file in (folder / fitted).iterdir()} == left


@pytest.mark.slow
def test_one_rank_prints_and_all_work_together(done):
    folder, told = done
    assert told.stdout.count("2 latents of 400 rows") == 2
    assert told.stdout.count("jobs, 0 of them finished already") == 2
    assert told.stdout.count("table/results.json, table.md and table.html") == 1
    assert "Default process group" not in told.stderr  # which the ranks have left by then
    about = json.loads((folder / "whole" / "model.json").read_text())["about"]
    assert about["provenance"]["ranks"] == 2


@pytest.mark.slow
def test_a_table_of_two_ranks_is_that_of_one_process(done, demix):
    folder, _ = done
    assert demix.run(*EXPERIMENT, folder / "table alone").returncode == 0
    files = (folder / name / "results.json" for name in ("table", "table alone"))
    (ours,), (theirs,) = (json.loads(file.read_text()) for file in files)
    assert ours["provenance"]["ranks"] == 2
    assert ours["steps"] == theirs["steps"]
    assert ours["r2"] == pytest.approx(theirs["r2"], abs=1e-3)


@pytest.mark.slow
def test_other_commands_are_refused_in_one_sentence(done):
    said = "Error: demix report runs in one process; start it without torchrun, which is for fit"
    assert done[1].stderr.count(said) == 1


@pytest.mark.slow
def test_ranks_end_with_a_job_that_fails(done):
    said = done[1].stderr
    assert said.count("checkpoint.safetensors is damaged or no checkpoint of demix") == 1
    assert "gloo" not in said
    assert said.count("lost another rank") <= 1  # of the fit, which was killed, if it lived to see
