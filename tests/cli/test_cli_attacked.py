"""What an attacker found in commands: files of others and odd options."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command import BRIEF_ROWS, MAIN, one_sentence
from demix import (
    ContrastiveDemixer,
    DemixError,
    Encoder,
    Recipe,
    Sphere,
    export_onnx,
    save_encoder,
)
from demix._support.files import LOCK
from demix._support.locks import lock_folder
from demix.cli import claims
from demix.cli.claims import claimed


@pytest.fixture
def rows(tmp_path, walk):
    """The walk in random order, so that no command warns of neighbours that are alike."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).permutation(walk))
    return tmp_path / "rows.npy"


def test_reproduce_leaves_tables_and_folders_of_others_alone(demix, tmp_path):
    out = tmp_path / "v"
    kept = out / "unfinished" / "2-0-unsupervised"
    kept.mkdir(parents=True)
    (kept / "thesis.tex").write_text("precious")
    (out / "results.json").write_text("[]")
    command = ["reproduce", "clica-table1", "--rows", 2, "--scale", "smoke", "--out", out]
    (out / "table.md").write_text("precious")
    assert "table.md holds something else" in demix.refusal(*command)
    (out / "table.html").write_text("precious")
    assert "table.html holds something else" in demix.refusal(*command)
    for name in ("table.md", "table.html"):
        assert (out / name).read_text() == "precious"
        (out / name).unlink()
    done = demix.run_python(BRIEF_ROWS + MAIN, *command)
    assert done.returncode == 0, done.stderr
    assert (kept / "thesis.tex").read_text() == "precious"


def test_a_model_is_not_saved_over_files_of_others(tmp_path):
    encoder = Encoder(3, Sphere(2))
    for name in ("model.json", "model.safetensors"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("precious")
        with pytest.raises(DemixError, match=f"{name} holds something else"):
            save_encoder(encoder, folder)
        assert [file.read_text() for file in folder.iterdir()] == ["precious"]
    save_encoder(encoder, tmp_path / "own")
    save_encoder(encoder, tmp_path / "own")


def test_an_export_replaces_no_file_of_others(tmp_path):
    (tmp_path / "my.onnx").write_text("precious")
    with pytest.raises(DemixError, match="holds something else"):
        export_onnx(Encoder(3, Sphere(2)), tmp_path / "my.onnx")
    assert (tmp_path / "my.onnx").read_text() == "precious"


def test_an_empty_lock_of_another_program_stays(tmp_path):
    assert LOCK == ".demix.lock"
    (tmp_path / ".lock").touch()
    with lock_folder(tmp_path):
        pass
    assert (tmp_path / ".lock").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["fit", "X", "--n-latents", 10**23], "n_latents must be a whole number from 1 to"),
        (["fit", "X", "--n-latents", 10**7], "n_latents must be a whole number from 1 to"),
        (["fit", "X", "--lag", ""], "--lag takes a number or a range"),
        (["fit", "X", "--device", "hpu"], "a device that torch can use here"),
        (["fit", "TABLE", "--columns", "a,,b"], "column '' in "),
        (["probe", "X", "X", "--kind", "0=periodic:1e-320"], "A period must be a positive number"),
        (["probe", "X", "X", "--kind", "0=ordinal", "--kind", "0=continuous"], "twice; give"),
        (["probe", "X", "X", "--factors", "9" * 5000], "There is no factor"),
        (["evaluate", "--latents", "X", "--factors", "X", "--categorical", "9" * 5000], "takes"),
        (["render", "sprites", "--size", 0], "from 1 to 1024, but got 0"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else "",
)
def test_odd_options_end_in_a_sentence(command, words, demix, x, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n2,3\n5,4\n")
    given = [{"X": x, "TABLE": table}.get(part, part) for part in command]
    assert words in demix.refusal(*given, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_checkup_takes_no_seed_below_zero(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", np.concatenate([walk, walk]))
    demix.run_briefly("fit", tmp_path / "x.npy", "--n-latents", 2, "--out", tmp_path / "model")
    command = ["checkup", tmp_path / "model", tmp_path / "x.npy", "--seed", -1, "--no-refits"]
    assert "A seed must be" in demix.refusal(*command, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "setting",
    [
        *({"recipe": "x"}, {"recipe": {}}, {"conditional": 10**400}, {"random_state": -1}),
        *({"augmentation": "x"}, {"augmentation": 1}),
    ],
    ids=str,
)
def test_settings_of_other_kinds_are_refused_in_python(setting, walk):
    if "conditional" in setting:
        setting = {**setting, "space": "box"}
    with pytest.raises(DemixError):
        ContrastiveDemixer(2, **setting).fit(walk)


@pytest.mark.parametrize("setting", [{"steps": "x"}, {"batch": 3.5}], ids=str)
def test_recipes_are_of_whole_numbers(setting):
    with pytest.raises(DemixError, match="must be a whole number"):
        Recipe(**setting)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_what_a_checkpoint_cannot_be_of_is_refused(tmp_path, walk):
    from demix.training.checkpoints import _read, _sealed

    place = tmp_path / "checkpoint.safetensors"

    def fit() -> None:
        recipe = Recipe(steps=3, batch=32)
        ContrastiveDemixer(2, recipe=recipe, encoder={"hidden": (4,)}).fit(walk, checkpoint=place)

    fit()
    tensors, facts = _read(place)
    for change in ({"step": 10**6}, {"seconds": -1e308}, {"best": {"value": float("nan")}}):
        state = json.loads(json.dumps(facts["state"]))
        for key, new in change.items():
            state[key] = state[key] | new if isinstance(new, dict) else new
        place.write_bytes(_sealed(tensors, facts | {"state": state}))
        with pytest.raises(DemixError, match="is damaged or no checkpoint"):
            fit()


def test_a_wrong_option_costs_nothing_of_a_finished_consensus(demix, x, tmp_path):
    out = tmp_path / "agreed"
    command = ["consensus", x, "--n-latents", 2, "--seeds", 2, "--out", out]
    done = demix.run_briefly(*command)
    assert done.returncode == 0, done.stderr
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    for wrong in (["--held-out", 5], ["--group", "nonsense"], ["--seeds", 10**12]):
        demix.refusal(*command, "--overwrite", *wrong)
        assert {f: f.read_bytes() for f in out.rglob("*") if f.is_file()} == before


def test_no_model_is_written_through_a_linked_folder(demix, x, tmp_path):
    victim = tmp_path / "victim"
    save_encoder(Encoder(3, Sphere(2)), victim)
    before = {file.name: file.read_bytes() for file in victim.iterdir()}
    begun = {"unfinished": True, "provenance": {"command": "demix consensus x"}}
    out = tmp_path / "out"
    out.mkdir()
    (out / "consensus.json").write_text(json.dumps(begun))
    (out / "seed-0").symlink_to(victim)
    told = demix.refusal("consensus", x, "--n-latents", 2, "--seeds", 2, "--out", out)
    assert "seed-0 to be a folder of demix, but it is a link" in told
    assert {file.name: file.read_bytes() for file in victim.iterdir()} == before


@pytest.mark.parametrize("name", ["seed-1", "model"])
def test_a_linked_folder_that_comes_during_training_is_refused(name, tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()

    def command():
        with claimed("consensus", out, "consensus.json", [], overwrite=False) as claim:
            (out / name).symlink_to(victim)
            claim.begin()
            save_encoder(Encoder(3, Sphere(2)), out / name)

    with pytest.raises(DemixError, match=f"{name} to be free .* but it is a link"):
        command()
    assert list(victim.iterdir()) == []


def test_what_was_ended_while_it_replaced_a_fit_is_not_used(demix, x, tmp_path):
    model = tmp_path / "model"
    command = ["fit", x, "--n-latents", 2, "--out", model]
    demix.run_briefly(*command)
    marker = json.loads((model / "fit.json").read_text())
    (model / "fit.json").write_text(json.dumps(marker | {"unfinished": True}))
    for use in (
        ["report", model, "--out", tmp_path / "page"],
        ["transform", model, x, "--out", tmp_path / "z.npy"],
        ["export", model, "--onnx", tmp_path / "m.onnx"],
    ):
        assert "holds an unfinished fit" in demix.refusal(*use)
    done = demix.run_briefly(*command)
    assert done.returncode == 0, done.stderr
    assert demix.run("report", model, "--out", tmp_path / "page").returncode == 0


def test_a_result_that_is_to_be_replaced_keeps_its_numbers_until_the_end(demix, rows, tmp_path):
    out = tmp_path / "scores"
    command = ["evaluate", "--latents", rows, "--factors", rows, "--out", out]
    demix.run_briefly(*command)
    before = (out / "scores.json").read_bytes()
    # The page could not be written: a folder stands in its place.
    (out / "report.html").unlink()
    (out / "report.html").mkdir()
    one_sentence(demix.run_briefly(*command, "--overwrite"))
    assert (out / "scores.json").read_bytes() == before
    (out / "report.html").rmdir()
    assert demix.run_briefly(*command, "--overwrite").returncode == 0


def test_scenes_without_a_seal_are_not_written_to(demix, tmp_path):
    order = {"scene": "sprites", "n": 3, "size": 16, "seed": 0, "pairs": None, "engine": "embree"}
    about = {"provenance": {"command": "demix render"}, "order": order, "renderer": {}}
    (tmp_path / "meta.json").write_text(json.dumps(about))
    (tmp_path / "images.npy").write_text("precious")
    told = demix.refusal("render", "sprites", "--n", 3, "--size", 16, "--out", tmp_path)
    assert "meta.json is damaged" in told
    assert (tmp_path / "images.npy").read_text() == "precious"


def test_folders_notes_and_checkpoints_of_others_in_unfinished_stay(demix, tmp_path):
    for name in (
        "gone-mine/a",
        "sweep-photos/a",
        "gone-x/precious.json",
        "sweep-mine/precious.json",
        "1-0-identity/own.safetensors",
    ):
        (tmp_path / "unfinished" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unfinished" / name).write_text("precious")
    (tmp_path / "unfinished" / "sweep-a").write_text("precious")
    (tmp_path / "results.json").write_text("[]")
    command = ["reproduce", "clica-table1", "--rows", 1, "--scale", "smoke", "--out", tmp_path]
    done = demix.run_python(BRIEF_ROWS + MAIN, *command)
    assert done.returncode == 0, done.stderr
    kept = [file.read_text() for file in (tmp_path / "unfinished").rglob("*") if file.is_file()]
    assert kept == ["precious"] * 6


def test_a_page_of_others_is_not_replaced_in_an_unfinished_folder(demix, x, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    begun = {"unfinished": True, "provenance": {"command": "demix evaluate"}}
    (out / "scores.json").write_text(json.dumps(begun))
    (out / "report.html").write_text("precious")
    told = demix.refusal("evaluate", "--latents", x, "--factors", x, "--out", out)
    assert "report.html holds something else" in told
    assert (out / "report.html").read_text() == "precious"


@pytest.mark.parametrize("name", ["figure.svg", "figure.png"])
def test_a_figure_of_others_is_not_replaced_in_an_unfinished_folder(name, demix, rows, tmp_path):
    begun = {"unfinished": True, "provenance": {"command": "demix probe"}}
    out = tmp_path / "out"
    out.mkdir()
    (out / "probe.json").write_text(json.dumps(begun))
    (out / name).write_bytes(b"\x89PNG <svg precious")
    assert f"{name} holds something else" in demix.refusal("probe", rows, rows, "--out", out)
    assert (out / name).read_bytes() == b"\x89PNG <svg precious"
    (out / name).unlink()
    for more in ([], ["--overwrite"]):  # it goes on, and replaces its own
        done = demix.run_briefly("probe", rows, rows, "--out", out, *more)
        assert done.returncode == 0, done.stderr


def test_a_refused_command_leaves_links_to_nothing_where_they_are(tmp_path):
    marker = {"provenance": {"command": "demix fit"}, "unfinished": True}
    (tmp_path / "fit.json").write_text(json.dumps(marker))
    link = tmp_path / "checkpoint.safetensors"
    link.symlink_to("nowhere")
    with (
        pytest.raises(DemixError, match="Refused"),
        claimed("fit", tmp_path, "fit.json", [], overwrite=False, leftovers=[link.name]),
    ):
        raise DemixError("Refused.")
    assert link.is_symlink()


def test_folders_deep_in_each_other_are_no_trouble(abyss):
    (abyss / "fit.json").write_text('{"provenance": {"command": "demix fit"}}')
    with claimed("fit", abyss, "fit.json", [], overwrite=True) as claim:
        claim.begin()
    assert "unfinished" in (abyss / "fit.json").read_text()


@pytest.mark.parametrize("mine", ["precious", '{"mine": 1}', "{precious"])
@pytest.mark.parametrize("moment", ["lock_folder", "claim_folder"])
def test_a_marker_of_others_that_comes_before_or_after_the_lock_stays(
    moment, mine, tmp_path, monkeypatch
):
    before = getattr(claims, moment)

    def late(folder, *rest, **more):
        found = before(folder, *rest, **more)
        if (tmp_path / "out" / LOCK).exists() or moment == "lock_folder":
            (tmp_path / "out" / "scores.json").write_text(mine)
        return found

    monkeypatch.setattr(claims, moment, late)
    with (
        pytest.raises(DemixError, match=r"something else|a file that was written meanwhile"),
        claimed("evaluate", tmp_path / "out", "scores.json", [], overwrite=True) as claim,
    ):
        claim.begin()
    assert (tmp_path / "out" / "scores.json").read_text() == mine
