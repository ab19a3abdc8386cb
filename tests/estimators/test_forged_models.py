"""Models that a stranger wrote and sealed: refused in one sentence, by every command."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from demix import (
    ContrastiveDemixer,
    DemixError,
    Encoder,
    InstanceDemixer,
    Sphere,
    export_onnx,
    load_encoder,
    load_model,
    save_encoder,
)
from demix.data.data import as_data
from demix.estimators.encoding import encode
from faults.forging import sealed


@pytest.fixture(scope="module")
def honest(demix, tmp_path_factory) -> Path:
    """A folder with data and the fit to them."""
    folder = tmp_path_factory.mktemp("honest")
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 1000))
    np.save(folder / "x.npy", np.stack([np.cos(angle), np.sin(angle)], axis=1).astype("f4"))
    done = demix.run_briefly("fit", folder / "x.npy", "--n-latents", 2, "--out", folder / "model")
    assert done.returncode == 0, done.stderr
    return folder


def forged(honest: Path, place: Path, *, about: dict | None = None, weights=None) -> Path:
    """Copy the model with other facts or weights, and checksums that fit."""
    shutil.copytree(honest / "model", place, dirs_exist_ok=True)
    raw = (place / "model.safetensors").read_bytes()
    if weights is not None:
        raw = save({name: weights(name, value) for name, value in load(raw).items()})
        (place / "model.safetensors").write_bytes(raw)
    description = json.loads((place / "model.json").read_text())
    description["about"] |= about or {}
    (place / "model.json").write_bytes(sealed(description, raw))
    return place


WRONG = [None, True, -1, 1e400, "text", [], [1], [["a"]], {}, {"a": {}}, {"bits": "many"}, [None]]
FACTS = ["parameters", "gain", "history", "best_step", "steps", "seconds", "notes", "data"]
FACTS += ["provenance", "feature_names", "classes", "origin", "rows", "time_order", "estimator"]


@pytest.mark.parametrize("fact", FACTS)
def test_facts_of_wrong_types_end_in_a_sentence_or_change_nothing(fact, demix, honest, tmp_path):
    commands = []
    for number, wrong in enumerate(WRONG):
        model = forged(honest, tmp_path / str(number), about={fact: wrong})
        commands.append(["report", model, "--out", tmp_path / f"{number}-report"])
        if fact == "feature_names" or number == 0:  # others are checked before rows are read
            out = tmp_path / f"{number}.npy"
            commands.append(["transform", model, honest / "x.npy", "--out", out])
        with suppress(DemixError):  # anything else fails
            load_model(model)
    for command, done in zip(commands, demix.run_each(commands), strict=True):
        assert done.returncode in (0, 2), (fact, command, done.stderr[-600:])
        assert "Traceback" not in done.stderr, (fact, command, done.stderr[-600:])


LONG = "x" * 10**6


@pytest.mark.parametrize(
    "wrong", [LONG, [LONG, LONG], {LONG: LONG}, 10**3000], ids=lambda x: type(x).__name__
)
def test_parameters_of_any_length_end_in_a_short_sentence(wrong, honest, tmp_path):
    x = np.load(honest / "x.npy")
    about = json.loads((honest / "model" / "model.json").read_text())["about"]
    for name in ("lag", "encoder"):
        change = {"parameters": about["parameters"] | {name: wrong}}
        model = load_model(forged(honest, tmp_path / name, about=change))
        with pytest.raises(DemixError) as told:
            model.fit(x)
        assert len(str(told.value)) < 500


@pytest.mark.parametrize(
    "noise", [LONG, [LONG], 10**3000, float("inf"), 0], ids=lambda x: type(x).__name__
)
def test_noise_of_any_length_ends_in_a_short_sentence(noise):
    with pytest.raises(DemixError, match="noise must be positive and finite") as told:
        InstanceDemixer(1, noise=noise).fit(np.random.default_rng(0).normal(size=(50, 2)))
    assert len(str(told.value)) < 500


def test_compare_and_checkup_refuse_them_too(demix, honest, tmp_path):
    model = forged(honest, tmp_path / "model", about={"history": [{"loss": "low"}]})
    for command in (
        ["compare", honest / "model", model, "--out", tmp_path / "out"],
        ["checkup", model, honest / "x.npy", "--out", tmp_path / "out"],
    ):
        assert "Expected records of numbers as history in" in demix.refusal(*command)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused(bad, demix, honest, tmp_path):
    def spoil(name, value):
        value = value.clone()
        if name == "body.0.weight":
            value[0, 0] = bad
        return value

    model = forged(honest, tmp_path / "model", weights=spoil)
    for open_it in (load_model, load_encoder):
        with pytest.raises(DemixError, match=r"body\.0\.weight has numbers that are not finite"):
            open_it(model)
    for command in (
        ["transform", model, honest / "x.npy", "--out", tmp_path / "z.npy"],
        ["export", model, "--onnx", tmp_path / "m.onnx"],
    ):
        assert "are not finite; train the model again" in demix.refusal(*command)


def test_an_encoder_that_is_not_finite_is_not_exported(tmp_path):
    encoder = Encoder(3, Sphere(2))
    with torch.no_grad():
        encoder.body[0].weight[0, 0] = float("nan")
    with pytest.raises(DemixError, match="are not finite"):
        export_onnx(encoder, tmp_path / "m.onnx")
    assert not any(tmp_path.iterdir())


def test_latents_that_are_not_finite_are_not_written(demix, honest, tmp_path):
    # Finite weights, so large that what they give is not.
    model = forged(
        honest,
        tmp_path / "model",
        weights=lambda name, value: torch.full_like(value, 3e38) if "weight" in name else value,
    )
    told = demix.refusal("transform", model, honest / "x.npy", "--out", tmp_path / "z.npy")
    assert "The latents of rows 0..999 of" in told
    assert "are not finite" in told
    assert not (tmp_path / "z.npy").exists()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("body", ["mlp", "compact"])
def test_models_of_any_precision_are_used(kind, body, demix, tmp_path):
    shape = 4 if body == "mlp" else (1, 16, 16)
    encoder = Encoder(shape, Sphere(2), body=body)
    x = np.random.default_rng(0).random((20, *np.atleast_1d(shape))).astype("f4")
    np.save(tmp_path / "x.npy", x)
    save_encoder(encoder.to(kind), tmp_path / "model")
    done = demix.run(
        "transform", tmp_path / "model", tmp_path / "x.npy", "--out", tmp_path / "z.npy"
    )
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        wide = encoder.double()(torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wide, atol=0.1)
    done = demix.run("export", tmp_path / "model", "--onnx", tmp_path / "m.onnx")
    assert done.returncode == 0, done.stderr


def test_a_device_that_is_not_there_is_refused(honest):
    x = np.load(honest / "x.npy")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for device in ("cuda", "cuda:3", "gpu", "meta", ""):
        with pytest.raises(DemixError, match="Expected a device that torch can use here"):
            ContrastiveDemixer(2, device=device).fit(x)
        with pytest.raises(DemixError, match="Expected a device that torch can use here"):
            load_model(honest / "model", device=device)


@pytest.mark.parametrize(
    "change",
    [
        {"n_latents": 10**9},
        {"n_latents": 2**63},
        {"space": {"kind": "Box", "dim": 10**9, "low": 0.0, "high": 1.0}},
        {"random_state": -1},
        {"random_state": "x"},
        {"conditional": 10**400},
        {"recipe": {"batch": 3.5}},
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(change, demix, honest, tmp_path):
    about = json.loads((honest / "model" / "model.json").read_text())["about"]
    model = forged(honest, tmp_path / "m", about={"parameters": about["parameters"] | change})
    told = demix.refusal(
        "checkup", model, honest / "x.npy", "--no-refits", "--out", tmp_path / "out"
    )
    assert "does not describe a fitted ContrastiveDemixer" in told


def test_other_facts_that_cannot_be_are_refused(demix, honest, tmp_path):
    changes = [{"feature_names": ["a", "a"]}, {"seconds": 10**400}, {"rows": 7}, {"rows": 0}]
    demix.refusals(
        ["report", forged(honest, tmp_path / str(number), about=change), "--out", tmp_path / "out"]
        for number, change in enumerate(changes)
    )


def test_latents_of_other_rows_are_refused(demix, honest, tmp_path):
    model = forged(honest, tmp_path / "m")
    np.save(model / "latents.npy", np.zeros((7, 2), dtype="f4"))
    assert "for each of 1000 rows" in demix.refusal("report", model, "--out", tmp_path / "out")


def test_a_model_that_float32_cannot_hold_is_not_exported(demix, honest, tmp_path):
    model = forged(
        honest,
        tmp_path / "m",
        weights=lambda name, value: torch.full_like(value, 1000) if name == "log_scale" else value,
    )
    told = demix.refusal("export", model, "--onnx", tmp_path / "m.onnx")
    assert "whose numbers fit into float32, but its scale does not" in told


@pytest.mark.parametrize("names", [5, "ab", {"a": 0, "b": 1}], ids=str)
def test_names_of_columns_are_checked_by_transform_too(names, demix, honest, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    model = forged(honest, tmp_path / "model", about={"feature_names": names})
    command = ["transform", model, tmp_path / "x.csv", "--out", tmp_path / "z.npy"]
    assert "Expected names that differ as feature_names in" in demix.refusal(*command)
    description = json.loads((model / "model.json").read_text())
    del description["about_sha256"]
    (model / "model.json").write_text(json.dumps(description))
    assert "is not a demix model folder: 'about_sha256'" in demix.refusal(*command)


def test_a_space_that_no_number_fits_into_is_refused(demix, honest, tmp_path):
    model = forged(honest, tmp_path / "model")
    description = json.loads((model / "model.json").read_text())
    description["space"]["radius"] = 1e-320
    raw = (model / "model.safetensors").read_bytes()
    (model / "model.json").write_bytes(sealed(description, raw))
    command = ["transform", model, honest / "x.npy", "--out", tmp_path / "z.npy"]
    assert "needs a positive, finite radius, but got 1e-320" in demix.refusal(*command)


def test_rows_far_from_the_fit_have_no_latents():
    # Their outputs are finite, but not the norm, by which a sphere divides.
    torch.manual_seed(0)
    encoder = Encoder(3, Sphere(2))
    far = as_data(torch.full((4, 3), 1e30).numpy())
    assert (encoder(far.take(torch.arange(4))) == 0).all()
    with pytest.raises(DemixError, match=r"The latents of rows 0\.\.3 .* are not finite"):
        encode(encoder, far)
