"""Model folders come back to the bit, and what is not one is refused with the reason."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

import demix
from demix import (
    Box,
    DemixError,
    Encoder,
    L1Ball,
    Product,
    Real,
    Sphere,
    load_encoder,
    save_encoder,
)
from demix.papers.runner.original import paper_encoder

ENCODERS = {
    "sphere": lambda: Encoder(4, Sphere(3, radius=1.5), hidden=(8, 8), scale=2.0),
    "box": lambda: Encoder(4, Box(2, low=[0, -1]), hidden=(8,), residual=False, activation="silu"),
    "real": lambda: Encoder(4, Real(2), hidden=(8, 8)),
    "product": lambda: Encoder(4, Product([Product([L1Ball(2), Box(1)]), Sphere(2)]), hidden=(8,)),
    "paper": lambda: paper_encoder(4, Sphere(2)),
    "batch norm": lambda: paper_encoder(4, Real(2), batch_norm=True),
    "double": lambda: Encoder(4, Sphere(3), hidden=(8, 8)).double(),
}


def observations() -> torch.Tensor:
    return torch.randn((30, 4), generator=torch.Generator().manual_seed(0))


def seal(folder: Path, **edits) -> None:
    """Edit the description and give it and the weights a checksum that fits."""
    path = folder / "model.json"
    description = {**json.loads(path.read_text()), **edits}
    weights = (folder / "model.safetensors").read_bytes()
    model = {name: description.get(name) for name in ("space", "encoder")}
    sealed = hashlib.sha256(weights + json.dumps(model, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**description, "sha256": sealed}))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model folder."""
    save_encoder(ENCODERS["sphere"](), tmp_path / "model", about={"steps": 3})
    return tmp_path / "model"


@pytest.mark.parametrize("name", ENCODERS)
def test_a_model_comes_back_to_the_bit(name, tmp_path):
    encoder = ENCODERS[name]().initialise(torch.Generator().manual_seed(0))
    encoder.whitening.fit(observations())
    with torch.no_grad():
        encoder.log_scale.add_(0.1234)
    save_encoder(encoder, tmp_path / "deep" / "model")
    loaded = load_encoder(tmp_path / "deep" / "model")
    assert loaded.space == encoder.space
    assert loaded.settings == encoder.settings
    assert not loaded.training
    for (key, value), (name, same) in zip(
        encoder.state_dict().items(), loaded.state_dict().items(), strict=True
    ):
        assert key == name
        assert value.dtype == same.dtype
        assert torch.equal(value, same)
    x = observations().to(encoder.log_scale.dtype)
    assert torch.equal(loaded(x), encoder.eval()(x))


def test_a_loaded_model_can_be_trained_on(folder):
    encoder = load_encoder(folder)
    before = encoder(observations()).detach()
    optimiser = torch.optim.SGD(encoder.parameters(), lr=0.1)
    encoder(observations()).sum().backward()
    optimiser.step()
    assert not torch.equal(encoder(observations()), before)
    assert torch.equal(load_encoder(folder)(observations()), before)


def test_saving_twice_gives_the_same_files_and_leaves_no_others(folder, tmp_path):
    save_encoder(load_encoder(folder), tmp_path / "again", about={"steps": 3})
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    assert sorted(file.name for file in folder.iterdir()) == ["model.json", "model.safetensors"]


def test_the_description_is_plain_json(folder):
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert description["schema"] == 1
    assert description["demix"] == demix.__version__
    assert description["space"] == {"kind": "Sphere", "dim": 3, "radius": 1.5}
    assert description["about"] == {"steps": 3}


def test_facts_that_are_not_plain_data_leave_the_old_model_alone(folder):
    before = load_encoder(folder)(observations())
    with pytest.raises(DemixError, match=r"about .*plain data"):
        save_encoder(ENCODERS["real"](), folder, about={"space": Sphere(3)})
    assert torch.equal(load_encoder(folder)(observations()), before)


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (0, r"model\.safetensors has 0 bytes, too few .*; copy or save"),
        (1, r"model\.safetensors has 1 bytes, too few"),
        (100, r"model\.safetensors has 100 bytes, too few"),
        (-1, r"is damaged: model\.safetensors .*checksum; copy or save"),
    ],
)
def test_truncated_weights_are_refused(folder, kept, reason):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DemixError, match=reason):
        load_encoder(folder)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_one_flipped_bit_in_the_weights_is_refused(folder, share):
    path = folder / "model.safetensors"
    weights = bytearray(path.read_bytes())
    weights[int(share * len(weights))] ^= 1
    path.write_bytes(weights)
    with pytest.raises(DemixError, match=r"is damaged: model\.safetensors .*checksum"):
        load_encoder(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(DemixError, match=rf"not a demix model folder: .*{name}"):
        load_encoder(folder)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DemixError, match="nowhere is not a demix model folder"):
        load_encoder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", "{}", '{"schema": 1}', b"\xff\xfe\x00", '"schema"']
)
def test_a_description_that_is_none_is_refused(folder, text):
    path = folder / "model.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DemixError, match="model is not a demix model folder"):
        load_encoder(folder)


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_another_schema_is_refused(folder, schema):
    seal(folder, schema=schema, demix="9.9")
    with pytest.raises(DemixError, match=rf"schema {schema!r}, .* reads 1; open it .*demix 9\.9\."):
        load_encoder(folder)


SETTINGS = {
    "dim_in": 4,
    "body": "mlp",
    "hidden": [8, 8],
    "activation": "gelu",
    "residual": True,
    "batch_norm": False,
    "components": None,
}


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ({"space": {"kind": "Torus", "dim": 3}}, "Unknown space 'Torus'"),
        ({"space": {"kind": "Sphere", "dim": 4}}, r"does not hold .*\(3, 8\), but \(4, 8\)"),
        ({"space": {"kind": "Box", "dim": 3}}, r"does not hold .*log_scale has shape \(1,\)"),
        ({"space": {"kind": "Sphere", "dim": "3"}}, "whole dimension .*'3'"),
        ({"space": {"kind": "Sphere"}}, "Sphere cannot be built .*'dim'"),
        ({"space": {"kind": ["Sphere"]}}, "Unknown space"),
        ({"space": "Sphere"}, "described by a dict"),
        ({"space": None}, "described by a dict"),
        ({"encoder": None}, "does not hold the model"),
        ({"encoder": {}}, "does not hold the model.*unknown body"),
        ({"encoder": {"body": "mlp"}}, "does not hold the model.*dim_in"),
        ({"encoder": {**SETTINGS, "hidden": [8, 8, 8]}}, "does not hold .*has no body.3.linear"),
        ({"encoder": {**SETTINGS, "hidden": [9, 9]}}, r"does not hold .*\(8, 4\), but \(9, 4\)"),
        ({"encoder": {**SETTINGS, "hidden": [16, 16]}}, "does not hold the model.*too few"),
        ({"encoder": {**SETTINGS, "hidden": "8"}}, "does not hold the model"),
        ({"encoder": {**SETTINGS, "hidden": None}}, "does not hold the model"),
        ({"encoder": {**SETTINGS, "dim_in": -1}}, "does not hold the model"),
        ({"encoder": {**SETTINGS, "activation": "relu6"}}, "Unknown activation"),
        ({"encoder": {**SETTINGS, "residual": False}}, "does not hold the model"),
        ({"encoder": {**SETTINGS, "residual": 1}}, "residual must be true or false, but got 1"),
        ({"encoder": {**SETTINGS, "speed": 3}}, r"unknown settings \['speed'\]"),
        ({"encoder": {**SETTINGS, "scale": 3.0}}, r"unknown settings \['scale'\]"),
    ],
)
def test_a_description_that_does_not_fit_its_weights_is_refused(folder, edits, reason):
    seal(folder, **edits)
    with pytest.raises(DemixError, match=f"(?s){reason}"):
        load_encoder(folder)


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"not safetensors at all",
        pickle.dumps({"mean": [0.0]}),
        save({"a": torch.ones(2)}),
        save(ENCODERS["real"]().state_dict()),
    ],
    ids=["empty", "text", "pickle", "other tensors", "another model"],
)
def test_foreign_weights_are_refused_even_with_a_checksum(folder, weights):
    (folder / "model.safetensors").write_bytes(weights)
    seal(folder)
    with pytest.raises(DemixError, match="does not hold the model it describes"):
        load_encoder(folder)


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DemixError, match=r"Cannot write .*choose a folder"):
        save_encoder(ENCODERS["real"](), tmp_path / "file" / "model")


def test_the_model_of_a_finished_fit_stays(folder):
    before = (folder / "model.json").read_bytes()
    (folder / "fit.json").write_text("{}")
    with pytest.raises(DemixError, match=r"holds a finished 'demix fit', .* another folder\.$"):
        save_encoder(Encoder(4, Sphere(3), hidden=(5,)), folder)
    assert (folder / "model.json").read_bytes() == before
    (folder / "fit.json").write_text('{"unfinished": true}')
    save_encoder(Encoder(4, Sphere(3), hidden=(5,)), folder)
    assert (folder / "model.json").read_bytes() != before
