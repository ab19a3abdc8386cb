"""`demix consensus` writes what runs agree on, and refuses what it cannot use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from command import MAIN
from demix import load_model


@pytest.fixture(scope="module")
def agreed(demix, walk, tmp_path_factory) -> Path:
    """What `demix consensus` makes of the walk."""
    folder = tmp_path_factory.mktemp("consensus")
    np.save(folder / "x.npy", walk)
    options = ["--n-latents", 2, "--space", "sphere", "--seeds", 2, "--out", folder / "agreed"]
    done = demix.run("consensus", folder / "x.npy", *options)
    assert done.returncode == 0, done.stderr
    assert re.search(r"dimension 2: R² \d\.\d{3} \(95 % interval", done.stdout)
    assert str(folder / "agreed" / "report.html") in done.stdout
    return folder / "agreed"


def test_it_leaves_runs_latents_numbers_and_a_report(agreed, walk):
    assert sorted(file.name for file in agreed.iterdir()) == [
        "consensus.json",
        "latents.npy",
        "report.html",
        "seed-0",
        "seed-1",
    ]
    told = json.loads((agreed / "consensus.json").read_text())
    assert told["equivalence"] == "orthogonal"
    assert told["rows"] == 400
    assert told["provenance"]["command"].startswith("demix consensus ")
    latents = np.load(agreed / "latents.npy")
    assert latents.dtype == np.float32
    # Runs and maps are enough to make the latents again.
    mean = np.zeros((400, 2))
    for seed, map_ in zip(told["seeds"], told["maps"], strict=True):
        z = load_model(agreed / f"seed-{seed}").transform(walk).astype(float)
        mean += z @ np.array(map_["matrix"]) + np.array(map_["shift"])
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(latents, mean, atol=1e-5)
    page = (agreed / "report.html").read_text(encoding="utf-8")
    for words in (told["verdict"], "Two runs", "Time courses", "Theorem 2 of Zimmermann"):
        assert words in page


def test_labels_give_a_linear_consensus_for_programs(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    quarter = (np.arctan2(walk[:, 1], walk[:, 0]) // (np.pi / 2)).astype(int)
    np.save(tmp_path / "y.npy", quarter)
    options = ["--labels", tmp_path / "y.npy", "--n-latents", 2, "--seeds", 2, "--json"]
    out = tmp_path / "agreed"
    done = demix.run_briefly("consensus", tmp_path / "x.npy", *options, "--out", out)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == json.loads((tmp_path / "agreed" / "consensus.json").read_text())
    assert told["equivalence"] == "linear"
    assert "Time courses" not in (tmp_path / "agreed" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", 1], "--seeds must be from 2 to 1000, but got 1"),
        (["--seeds", -3], "--seeds must be from 2"),
        (["--held-out", 0.01], "held-out rows"),
        (["--held-out", 2], "held_out must be a share"),
        (["--group", "unitary"], "An equivalence is one of"),
        (["--lag", "0"], "lag must be a whole number"),
        (["--seed", "-1"], "A seed must be"),
        (["--lag", "1", "--instances"], "one source"),
    ],
    ids=str,
)
def test_what_cannot_be_agreed_on_is_refused_and_nothing_is_written(
    demix, walk, tmp_path, options, words
):
    np.save(tmp_path / "x.npy", walk)
    out = tmp_path / "deep" / "new"
    told = demix.refusal("consensus", tmp_path / "x.npy", *options, "--out", out)
    assert words in told
    assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]


def test_what_was_agreed_on_before_survives_a_refusal(demix, agreed):
    before = {file: file.read_bytes() for file in agreed.iterdir() if file.is_file()}
    demix.refusal("consensus", agreed.parent / "x.npy", "--seeds", 1, "--out", agreed)
    assert {file: file.read_bytes() for file in agreed.iterdir() if file.is_file()} == before


STOPPED = """
import pathlib
import demix.diagnostics.consensus as module

def stopped(*given, checkpoint, **more):
    if {checkpoint}:
        pathlib.Path(checkpoint, "seed-0.safetensors").write_bytes(b"begun")
    raise KeyboardInterrupt

module.consensus = stopped
"""


@pytest.mark.parametrize("checkpoint", [False, True], ids=["at once", "after a checkpoint"])
def test_what_was_agreed_on_before_stays_protected_after_ctrl_c(demix, agreed, checkpoint):
    before = (agreed / "consensus.json").read_bytes()
    fit = ["consensus", agreed.parent / "x.npy", "--n-latents", 2, "--seeds", 2, "--out", agreed]
    code = STOPPED.format(checkpoint=checkpoint) + MAIN
    done = demix.run_python(code, *fit, "--overwrite")
    assert done.returncode == 130
    assert ("the same command continues" in done.stderr) == checkpoint
    (agreed / "seed-0.safetensors").unlink(missing_ok=checkpoint is False)
    assert (agreed / "consensus.json").read_bytes() == before
    assert "add --overwrite to replace it" in demix.refusal(*fit, "--seed", 0)


def test_runs_of_other_seeds_are_not_taken_for_those_of_a_new_consensus(demix, agreed):
    before = {file: file.read_bytes() for file in agreed.rglob("*") if file.is_file()}
    fit = ["consensus", agreed.parent / "x.npy", "--n-latents", 2, "--seeds", 2, "--out", agreed]
    told = demix.refusal(*fit, "--seed", 1, "--overwrite")
    assert "seed-0 is of other seeds; remove it" in told
    assert {file: file.read_bytes() for file in agreed.rglob("*") if file.is_file()} == before


def test_a_folder_of_a_fit_is_left_alone(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "fit.json").write_text("{}")
    told = demix.refusal("consensus", tmp_path / "x.npy", "--out", tmp_path / "fit")
    assert "has no consensus.json of 'demix consensus'" in told
