"""An existing result is replaced only with --overwrite, an input never, by any command."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import BRIEF, MAIN
from demix import DemixError
from demix.cli import models
from demix.cli.transform import transform


def holds(place: Path) -> dict[str, str]:
    """Return what a folder holds, by checksum."""
    return {
        str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(place.rglob("*"))
        if file.is_file()
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory, walk) -> Path:
    """A folder with a walk as `x.npy`, long enough for a check-up."""
    folder = tmp_path_factory.mktemp("walks")
    np.save(folder / "x.npy", np.concatenate([walk, walk[::-1]]))
    np.save(folder / "few.npy", walk[:100, :1])
    return folder


@pytest.fixture(scope="module")
def model(demix, place) -> Path:
    """A fit to the walk."""
    done = demix.run_briefly("fit", place / "x.npy", "--n-latents", 2, "--out", place / "model")
    assert done.returncode == 0, done.stderr
    shutil.copytree(place / "model", place / "copy")
    return place / "model"


# Each command that makes one result, without where to write, and what it writes.
RESULTS = {
    "fit": (["fit", "x.npy", "--n-latents", 2, "--out"], "out"),
    "transform": (["transform", "model", "x.npy", "--out"], "z.npy"),
    "export": (["export", "model", "--onnx"], "m.onnx"),
    "report": (["report", "model", "--out"], "out"),
    "compare": (["compare", "model", "copy", "--out"], "out"),
    "evaluate": (["evaluate", "--latents", "few.npy", "--factors", "few.npy", "--out"], "out"),
    "probe": (["probe", "few.npy", "few.npy", "--out"], "out"),
    "checkup": (["checkup", "model", "x.npy", "--no-refits", "--out"], "out"),
    "preview": (["render", "sprites", "--preview"], "sheet.png"),
}


# What a check-up compares with is of no interest here.
QUICK = f"""{BRIEF}
import demix.diagnostics.pair_checks
demix.diagnostics.pair_checks._DRAWS = 3
"""


@pytest.mark.slow
@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_replaced_only_if_that_is_asked_for(name, demix, place, tmp_path):
    arguments, out = RESULTS[name]
    given = [place / a if a in ("x.npy", "few.npy", "model", "copy") else a for a in arguments]
    command = [*given, tmp_path / out]
    first = demix.run_python(QUICK + MAIN, *command)
    assert first.returncode == 0, first.stderr
    before = holds(tmp_path)
    told = demix.refusal(*command)
    assert "add --overwrite to replace it, or choose" in told
    assert holds(tmp_path) == before
    again = demix.run_python(QUICK + MAIN, *command, "--overwrite")
    assert again.returncode == 0, again.stderr
    assert set(holds(tmp_path)) == set(before)


def test_an_input_is_never_replaced(demix, place, model, tmp_path):
    own = tmp_path / "own.npy"
    own.write_bytes((place / "x.npy").read_bytes())
    os.link(own, tmp_path / "second.npy")
    before = holds(tmp_path), holds(model)
    for out in (own, tmp_path / "second.npy", model / "latents.npy"):
        told = demix.refusal("transform", model, own, "--out", out, "--overwrite")
        assert "The output must not replace what is read" in told
    # A folder in which an input lies is not written to, even one of our own.
    for command in (["fit", model / "latents.npy"], ["fit", own, "--time", model / "latents.npy"]):
        told = demix.refusal(*command, "--n-latents", 2, "--out", model, "--overwrite")
        assert "The output must not replace what is read" in told or "moment" in told
    assert (holds(tmp_path), holds(model)) == before


def test_a_link_is_no_place_for_a_result(demix, place, model, tmp_path):
    victim = tmp_path / "victim.npy"
    victim.write_bytes(b"\x93NUMPY precious")
    (tmp_path / "z.npy").symlink_to(victim)
    told = demix.refusal(
        "transform", model, place / "x.npy", "--out", tmp_path / "z.npy", "--overwrite"
    )
    assert "z.npy to be free for a file of demix, but it is a link" in told
    assert victim.read_bytes() == b"\x93NUMPY precious"


def test_a_page_of_the_user_is_left_alone(demix, model, tmp_path):
    page = "report.html"
    (tmp_path / page).write_text("<html>thesis</html>")
    told = demix.refusal("report", model, "--out", tmp_path, "--overwrite")
    assert "holds something else than demix writes" in told
    assert (tmp_path / page).read_text() == "<html>thesis</html>"


def test_a_folder_that_is_not_there_before_two_dots_is_not_made(demix, model, tmp_path):
    (tmp_path / "ev").mkdir()
    out = tmp_path / "nowhere" / ".." / "ev"
    for page in (False, True):
        if page:
            shutil.copy(model / "report.html", tmp_path / "ev")
        told = demix.refusal("report", model, "--out", out, "--overwrite")
        assert "--out must name a new .html file in an existing folder" in told
        assert [file.name for file in tmp_path.iterdir()] == ["ev"]
    demix.refusal("fit", model, "--out", tmp_path / "nowhere" / ".." / "ev")
    assert [file.name for file in tmp_path.iterdir()] == ["ev"]


@pytest.mark.parametrize("name", ["latents.npy", "model.safetensors", "report.html"])
def test_a_file_of_the_user_is_seen_before_training(name, demix, place, model, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(model, out)
    (out / name).write_text("my thesis")
    before = holds(out)
    fit = ["fit", place / "x.npy", "--n-latents", 2, "--out", out, "--overwrite"]
    assert "holds something else than demix writes" in demix.refusal(*fit)
    assert holds(out) == before


def test_the_mark_of_an_array_counts_at_its_beginning_only(demix, place, model, tmp_path):
    file = tmp_path / "notes.npy"
    file.write_bytes(b"my notes on \x93NUMPY")
    demix.refusal("transform", model, place / "x.npy", "--out", file, "--overwrite")
    assert file.read_bytes() == b"my notes on \x93NUMPY"


@pytest.mark.parametrize(
    "array",
    [
        np.array(["my notes"]),
        np.arange(1000),
        np.zeros((20, 2)),
        np.zeros(20, dtype=np.float32),
        np.zeros((20, 2), dtype=np.float32, order="F"),
        np.zeros((20, 2), dtype=np.float32),
    ],
    ids=["text", "whole", "float64", "vector", "columns first", "float32"],
)
def test_an_array_that_demix_cannot_have_written_stays(array, demix, place, model, tmp_path):
    out = Path(shutil.copytree(model, tmp_path / "out"))
    np.save(out / "latents.npy", array)
    before = holds(out)
    x = place / "x.npy"
    for command in (
        ["transform", model, x, "--out", out / "latents.npy"],
        ["fit", x, "--n-latents", 2, "--out", out],
    ):
        assert "holds something else" in demix.refusal(*command, "--overwrite")
    assert holds(out) == before


def test_latents_replace_no_file_that_came_while_rows_were_read(
    place, model, tmp_path, monkeypatch
):
    out, read = tmp_path / "z.npy", models.read_like

    def slowly(*given, **more):
        np.save(out, np.zeros((4, 2), dtype=np.float32))
        return read(*given, **more)

    monkeypatch.setattr(models, "read_like", slowly)
    with pytest.raises(DemixError, match="holds something else"):
        transform(model, place / "x.npy", out=out)
    assert np.load(out).shape == (4, 2)


def test_the_page_of_a_fit_is_replaced_only_if_that_is_asked_for(demix, model):
    before = holds(model)
    assert "add --overwrite" in demix.refusal("report", model)
    assert holds(model) == before


def test_what_was_begun_and_killed_can_be_begun_again(demix, place, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    begun = {"unfinished": True, "provenance": {"command": "demix evaluate --latents x"}}
    (out / "scores.json").write_text(json.dumps(begun))
    x = place / "few.npy"
    done = demix.run_briefly("evaluate", "--latents", x, "--factors", x, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "unfinished" not in json.loads((out / "scores.json").read_text())


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "nowhere.npy", "--out"],
        ["checkup", "nowhere", "nowhere.npy", "--out"],
        ["compare", "nowhere", "nowhere", "--out"],
        ["evaluate", "--latents", "nowhere.npy", "--factors", "nowhere.npy", "--out"],
        ["probe", "nowhere.npy", "nowhere.npy", "--out"],
        ["consensus", "nowhere.npy", "--out"],
        ["render", "sprites", "--n", 0, "--out"],
        ["reproduce", "clica-table1", "--rows", 99, "--out"],
        ["demo", "--seed", -1, "--out"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_refused_leaves_no_folder_behind(command, demix, tmp_path):
    demix.refusal(*command, tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
