"""A fit that was killed at any moment ends, by the same command, with the same bits."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from command import MAIN, one_sentence

# A third of the steps of a fit to so few rows leaves time enough to be killed in.
SHORT = """
from demix.estimators.base import Demixer
from demix.estimators.contrastive import ContrastiveDemixer
Demixer._most_steps = ContrastiveDemixer._most_steps = 50
"""


def gain_in(folder: Path) -> dict:
    return json.loads((folder / "model.json").read_text())["about"]["gain"]


def history_in(folder: Path) -> list[dict]:
    records = json.loads((folder / "model.json").read_text())["about"]["history"]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


def kill_when(demix, moment, *arguments: object) -> None:
    """Start a command, and kill it as soon as the moment has come."""
    demix.start_python(SHORT + MAIN, *arguments)
    demix.send(signal.SIGKILL, moment)
    assert demix.wait().returncode == -signal.SIGKILL


def written(path: Path, times: int):
    """Return whether a file has been written so many times since now."""
    seen = {path.stat().st_mtime_ns if path.exists() else 0}
    before = len(seen)

    def moment() -> bool:
        with suppress(FileNotFoundError):  # for a moment, while the old one is put aside
            seen.add(path.stat().st_mtime_ns)
        return len(seen) >= before + times

    return moment


@pytest.fixture(scope="module")
def labels(walk) -> np.ndarray:
    """Which quarter of the circle each row is in."""
    return (np.arctan2(walk[:, 1], walk[:, 0]) // (np.pi / 2)).astype(int)


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_with_the_same_bits(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    command = ["fit", tmp_path / "x.npy", "--n-latents", 2, "--conditional", "auto"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert demix.run_python(SHORT + MAIN, *command, "--out", whole).returncode == 0
    checkpoint = cut / "checkpoint.safetensors"
    for file, times in [
        (cut / "fit.json", 1),
        (checkpoint, 1),
        (checkpoint, 1),  # the first after it went on
        (cut / "latents.npy", 1),
        (cut / "model.safetensors", 1),
    ]:
        kill_when(demix, written(file, times), *command, "--out", cut)
    done = demix.run_python(SHORT + MAIN, *command, "--out", cut)
    assert done.returncode == 0, done.stderr
    for name in ("model.safetensors", "latents.npy"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert gain_in(cut) == gain_in(whole)
    assert history_in(cut) == history_in(whole)
    assert {file.name for file in cut.iterdir()} == {file.name for file in whole.iterdir()}


@pytest.mark.slow
def test_the_checkpoint_of_another_fit_is_refused(demix, walk, labels, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    np.save(tmp_path / "y.npy", labels)
    np.save(tmp_path / "other.npy", np.roll(labels, 1))
    np.save(tmp_path / "near.npy", walk + np.float32(0.01))
    out, command = tmp_path / "model", ["fit", tmp_path / "x.npy", "--n-latents", 2, "--labels"]
    checkpoint = out / "checkpoint.safetensors"
    kill_when(demix, checkpoint.exists, *command, tmp_path / "y.npy", "--out", out)
    (out / ".demix.lock").unlink()  # it holds nothing any more
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    for change in (
        [*command, tmp_path / "y.npy", "--seed", 1],
        [*command, tmp_path / "other.npy"],
        ["fit", tmp_path / "near.npy", "--n-latents", 2, "--labels", tmp_path / "y.npy"],
        ["fit", tmp_path / "x.npy", "--n-latents", 2],
    ):
        told = one_sentence(demix.run_python(SHORT + MAIN, *change, "--out", out))
        assert "is the checkpoint of another training; remove it to start anew" in told
        assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    done = demix.run_python(SHORT + MAIN, *command, tmp_path / "y.npy", "--out", out)
    assert done.returncode == 0, done.stderr
    assert not checkpoint.exists()
