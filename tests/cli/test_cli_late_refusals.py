"""What is refused late replaces nothing of an earlier result, or leaves it marked as unfinished."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer import Exit

from command import BRIEF, MAIN
from demix import DemixError, Encoder, Sphere, save_encoder
from demix._support.files import new_array, write_atomic
from demix.cli import claims, models
from demix.cli.claims import claimed
from demix.cli.export import export
from demix.cli.report import report
from demix.encoders import files as encoder_files
from demix.papers.commands.render import render
from demix.papers.scenes import registry

SMALL = ["--n-latents", 2]


def holds(place: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold."""
    files = sorted(file for file in place.rglob("*") if file.is_file())
    return {str(file.relative_to(place)): file.read_bytes() for file in files}


def table(path: Path, names: list[str]) -> Path:
    """Write a table of random numbers below these names."""
    numbers = np.random.default_rng(0).normal(size=(60, len(names)))
    lines = [",".join(names), *(",".join(f"{x:.2f}" for x in row) for row in numbers)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def x(tmp_path_factory, walk) -> Path:
    """The walk as a file."""
    file = tmp_path_factory.mktemp("walk") / "x.npy"
    np.save(file, walk)
    return file


@pytest.fixture(scope="module")
def finished(demix, x) -> Path:
    """A fit to the walk."""
    done = demix.run_briefly("fit", x, *SMALL, "--out", x.parent / "model")
    assert done.returncode == 0, done.stderr
    return x.parent / "model"


@pytest.fixture
def model(finished, tmp_path) -> Path:
    """A copy of the fit."""
    return Path(shutil.copytree(finished, tmp_path / "model"))


def test_names_too_long_for_a_model_are_refused_before_training(demix, model, tmp_path):
    long = table(tmp_path / "long.csv", [f"{i}" + 100_000 * "n" for i in range(3)])
    before = holds(model)
    for out in (model, tmp_path / "new"):
        told = demix.refusal("fit", long, *SMALL, "--out", out, "--overwrite")
        assert "names of columns of at most 1000 letters, but" in told
        assert "long.csv has one of 100001; shorten it" in told
    assert holds(model) == before
    assert not (tmp_path / "new").exists()


def test_a_model_that_cannot_be_saved_leaves_model_and_latents(demix, model, tmp_path):
    # Each of these letters takes 12 bytes in JSON.
    wide = table(tmp_path / "wide.csv", [f"{i:04}" + 996 * "\U0001f600" for i in range(1450)])
    before = holds(model)
    # The table has 60 rows, of which 8192 draws would be whitened for seconds.
    code = "from demix.encoders.encoder import Whitening\nWhitening.samples = 300\n"
    for out in (model, tmp_path / "new"):
        command = ["fit", wide, *SMALL, "--out", out, "--overwrite"]
        done = demix.run_python(BRIEF + code + MAIN, *command)
        assert done.returncode == 2
        assert "model.json of a model may have 16777216 bytes" in done.stderr
    assert holds(model) == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", ["{}", '{"schema": 1}', "my thesis"])
def test_a_description_of_the_user_is_seen_before_training(content, demix, x, model):
    (model / "model.json").write_text(content)
    before = {name: os.stat(model / name).st_mtime_ns for name in holds(model)}
    told = demix.refusal("fit", x, *SMALL, "--seed", 5, "--out", model, "--overwrite")
    assert "model.json holds something else" in told
    assert {name: os.stat(model / name).st_mtime_ns for name in holds(model)} == before


@pytest.mark.parametrize("change", ["latents.npy", "seed-0/model.json"])
def test_a_result_that_was_changed_stays_unfinished(change, tmp_path):
    out, marker = tmp_path / "out", "consensus.json"
    save_encoder(Encoder(3, Sphere(2)), out / "seed-0")
    with new_array(out / "latents.npy", (4, 2)):
        pass
    result = {"stability": [1.0], "provenance": {"command": "demix consensus x"}}
    (out / marker).write_text(json.dumps(result))

    def refused(file: str | None) -> None:
        arguments = ("consensus", out, marker, [])
        with claimed(*arguments, overwrite=True, leftovers=["latents.npy"]) as claim:
            claim.begin()
            if file is not None:
                (out / file).write_bytes(b"new")
            raise DemixError("It is refused late.")

    with pytest.raises(DemixError, match="refused late"):
        refused(None)
    assert json.loads((out / marker).read_text()) == result
    with pytest.raises(DemixError, match="refused late"):
        refused(change)
    assert json.loads((out / marker).read_text()) == result | {"unfinished": True}


@pytest.mark.parametrize("end", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space")], ids=repr)
@pytest.mark.parametrize("left", [False, True], ids=["nothing", "a checkpoint"])
def test_a_command_that_ended_before_it_changed_anything_leaves_a_result_finished(
    left, end, tmp_path, monkeypatch
):
    monkeypatch.setattr(claims, "ignore_interrupts", lambda: None)
    result = json.dumps({"provenance": {"command": "demix fit x"}})
    (tmp_path / "fit.json").write_text(result)

    def interrupted() -> None:
        with claimed("fit", tmp_path, "fit.json", [], overwrite=True, leftovers=["c"]) as claim:
            if left:
                write_atomic(tmp_path / "c", b"of this process")
            claim.begin()
            raise end if isinstance(end, KeyboardInterrupt) else DemixError("Full.") from end

    with pytest.raises((Exit, DemixError)):
        interrupted()
    assert (tmp_path / "fit.json").read_text() == result
    assert (tmp_path / "c").exists() == left


@pytest.mark.parametrize("name", ["report.html", "model.safetensors", "figure.png", "scores.json"])
@pytest.mark.parametrize("plant", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("marker")])
def test_what_is_no_file_in_the_place_of_one_is_refused_at_the_claim(name, plant, tmp_path):
    result = json.dumps({"provenance": {"command": "demix evaluate"}})
    (tmp_path / "marker").write_text(result)
    shutil.copy(tmp_path / "marker", tmp_path / "scores.json")
    (tmp_path / name).unlink(missing_ok=True)
    plant(tmp_path / name)
    with (
        pytest.raises(DemixError),
        claimed("evaluate", tmp_path, "scores.json", [], overwrite=True),
    ):
        pytest.fail("it was let in")
    assert (tmp_path / "marker").read_text() == result


@pytest.mark.parametrize("name", ["checkpoint.previous.safetensors", "fit.json"])
def test_a_refused_command_removes_no_file_that_came_while_it_ran(name, tmp_path):
    files = ["checkpoint.safetensors", "checkpoint.previous.safetensors"]

    def refused() -> None:
        with claimed("fit", tmp_path, "fit.json", [], overwrite=False, leftovers=files):
            write_atomic(tmp_path / files[0], b"of this process")
            (tmp_path / name).write_text("precious")
            raise DemixError("It is refused late.")

    with pytest.raises(DemixError, match="refused late"):
        refused()
    assert holds(tmp_path) == {name: b"precious"}


@pytest.mark.parametrize("name", ["latents.npy", "report.html", "seed-0/model.json", "fit.json"])
def test_a_file_that_came_while_a_command_ran_is_not_replaced(name, model, tmp_path):
    source, place = model / Path(name).name, tmp_path / "out" / name

    def written() -> None:
        with claimed("fit", tmp_path / "out", "fit.json", [], overwrite=False) as claim:
            claim.begin()
            place.parent.mkdir(exist_ok=True)
            shutil.copy(source, place)
            claim.begin()

    with pytest.raises(DemixError, match="a file that was written meanwhile"):
        written()
    assert place.read_bytes() == source.read_bytes()


RUNS = {
    "export": (encoder_files, "load_encoder", lambda model, out: export(model, out / "m.onnx")),
    "report": (models, "open_fit", lambda model, out: report(model, out=out)),
    "a new folder": (models, "open_fit", lambda model, out: report(model, out=out / "new")),
    "render": (registry, "traversals", lambda _, out: render("sprites", preview=out / "p.png")),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_file_that_comes_between_check_and_write_stays(name, model, tmp_path, monkeypatch):
    # The files that a second run of the command would replace.
    place, step, run = RUNS[name]
    first, out = tmp_path / "first", tmp_path / "out"
    for folder in (first, out):
        folder.mkdir()
    run(model, first)
    do = getattr(place, step)

    def meanwhile(*given: object, **more: object) -> object:
        shutil.copytree(first, out, dirs_exist_ok=True)
        return do(*given, **more)

    monkeypatch.setattr(place, step, meanwhile)
    with pytest.raises(DemixError, match="a file that was written meanwhile"):
        run(model, out)
    assert holds(out) == holds(first)
