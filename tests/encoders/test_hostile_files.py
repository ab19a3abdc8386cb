"""Model folders from a stranger: refused in one sentence, before they cost memory."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import pickle
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from demix import Box, DemixError, Encoder, Product, Sphere, load_encoder, save_encoder
from refusals import refusal


def seal(folder: Path, description: dict) -> None:
    """Write a description with the checksum that fits it and the weights."""
    weights = (folder / "model.safetensors").read_bytes()
    model = {name: description[name] for name in ("space", "encoder")}
    sealed = hashlib.sha256(weights + json.dumps(model, sort_keys=True).encode()).hexdigest()
    (folder / "model.json").write_text(json.dumps({**description, "sha256": sealed}))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model folder."""
    space = Product([Sphere(2), Box(2, low=[0.0, -1.0])])
    save_encoder(Encoder(4, space, hidden=(8, 8)), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def description(folder) -> dict:
    """What it says of itself."""
    return json.loads((folder / "model.json").read_text())


@pytest.fixture
def no_weights(monkeypatch) -> None:
    """From here on nothing reads weights or makes tensors of more than a few numbers."""

    def refuse(*_, **__):
        raise AssertionError("the weights were read")

    def small(values, *sizes):
        assert max((0, *sizes)) < 10_000, "a huge tensor was made"
        return expand(values, *sizes)

    expand = torch.Tensor.expand
    monkeypatch.setattr("demix.encoders.files.load", refuse)
    monkeypatch.setattr(torch.Tensor, "expand", small)


@pytest.mark.parametrize("hidden", [[10**9], [10**9, 10**9], [10**30], [1] * 10_000])
@pytest.mark.usefixtures("no_weights")
def test_layers_larger_than_the_file_are_refused_before_they_are_built(folder, description, hidden):
    for residual in (True, False):
        description["encoder"] |= {"hidden": hidden, "residual": residual}
        seal(folder, description)
        assert "too few for what model.json describes" in refusal(load_encoder, folder)


@pytest.mark.usefixtures("no_weights")
def test_layers_that_would_take_minutes_are_refused_before_they_are_built(
    folder, description, monkeypatch
):
    description["encoder"] |= {"hidden": [1] * 10_000}
    seal(folder, description)
    os.truncate(folder / "model.safetensors", 10**6)
    monkeypatch.setattr("demix.encoders.bodies.ResidualLayer", None)
    assert "up to 1000 hidden layers, but got widths (1, 1, 1" in refusal(load_encoder, folder)


@pytest.mark.parametrize(
    "space",
    [
        {"kind": "Box", "dim": 10**10},
        {"kind": "Product", "parts": [{"kind": "Box", "dim": 10**10}, {"kind": "Real", "dim": 1}]},
        {"kind": "Product", "parts": [{"kind": "Box", "dim": 1000}] * 1000},
    ],
    ids=["box", "part", "many parts"],
)
@pytest.mark.usefixtures("no_weights")
def test_a_space_larger_than_the_file_is_refused_before_it_is_built(folder, description, space):
    seal(folder, description | {"space": space})
    assert "too few for what model.json describes" in refusal(load_encoder, folder)


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize("size", [10**6, [3, 1000, 1000], [10**9] * 8])
def test_an_input_larger_than_the_file_is_refused(folder, description, size):
    description["encoder"]["dim_in"] = size
    seal(folder, description)
    assert "too few for what model.json describes" in refusal(load_encoder, folder)


@pytest.mark.usefixtures("no_weights")
def test_weights_larger_than_what_is_described_are_not_read(folder):
    os.truncate(folder / "model.safetensors", 10**12)  # a hole, which takes no room on the disk
    assert "has 1000000000000 bytes, too many for what model.json describes" in refusal(
        load_encoder, folder
    )


@pytest.mark.usefixtures("no_weights")
def test_a_description_of_a_terabyte_is_not_read(folder):
    os.truncate(folder / "model.json", 10**12)
    assert "not a demix model folder: model.json has more than 16777216 bytes" in refusal(
        load_encoder, folder
    )


def test_a_description_too_long_to_be_read_again_is_not_written(folder):
    before = (folder / "model.json").read_bytes()
    with pytest.raises(DemixError, match=r"may have 16777216 bytes, .* file of their own"):
        save_encoder(load_encoder(folder), folder, about={"log": "x" * 2**24})
    assert (folder / "model.json").read_bytes() == before
    load_encoder(folder)


def test_a_description_that_nests_without_end_is_refused(folder):
    (folder / "model.json").write_text("[" * 500_000)
    assert "is not a demix model folder" in refusal(load_encoder, folder)


def test_spaces_that_nest_without_end_are_refused(folder, description):
    space = {"kind": "Real", "dim": 4}
    for _ in range(300):
        space = {"kind": "Product", "parts": [space]}
    seal(folder, description | {"space": space})
    assert "does not hold the model it describes" in refusal(load_encoder, folder)


def header(weights: bytes) -> dict:
    (length,) = struct.unpack("<Q", weights[:8])
    return json.loads(weights[8 : 8 + length])


def with_header(weights: bytes, entries: dict) -> bytes:
    (length,) = struct.unpack("<Q", weights[:8])
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + weights[8 + length :]


@pytest.mark.parametrize("length", [0, 2**20, 2**62, 2**64 - 1])
def test_a_header_that_claims_another_length_is_refused(folder, description, length):
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    seal(folder, description)
    assert "does not hold the model it describes" in refusal(load_encoder, folder)


@pytest.mark.parametrize(
    "edit",
    [
        {"shape": [10**9, 10**9]},
        {"shape": [2**63, 2]},
        {"shape": [-1]},
        {"data_offsets": [0, 2**62]},
        {"data_offsets": [8, 0]},
        {"dtype": "OBJECT"},
        {"dtype": "I32"},
    ],
    ids=str,
)
def test_a_header_that_claims_other_tensors_is_refused(folder, description, edit):
    path = folder / "model.safetensors"
    entries = header(path.read_bytes())
    entries["log_scale"] |= edit
    path.write_bytes(with_header(path.read_bytes(), entries))
    seal(folder, description)
    assert "does not hold the model it describes" in refusal(load_encoder, folder)


def test_tensors_of_other_names_and_types_are_refused(folder, description):
    path = folder / "model.safetensors"
    honest = load(path.read_bytes())
    for edit, reason in [
        ({"more\n": torch.ones(1)}, r"has 'more\n', which no model has"),
        ({"whitening.matrix": torch.eye(4).double()}, "whitening.matrix has numbers of type"),
        ({"whitening.mean": torch.zeros(4).long()}, "whitening.mean has numbers of type"),
    ]:
        path.write_bytes(save(honest | edit))
        seal(folder, description)
        assert reason in refusal(load_encoder, folder)
    path.write_bytes(save({name: value.to(torch.complex64) for name, value in honest.items()}))
    seal(folder, description)
    assert "has numbers of type torch.complex64" in refusal(load_encoder, folder)


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.pkl", "model.pickle"])
def test_a_folder_with_a_pickle_is_refused(folder, name):
    (folder / name).write_bytes(pickle.dumps({"weights": 1}))
    told = refusal(load_encoder, folder)
    assert name in told
    assert "demix never opens pickles" in told
    assert "demix never opens pickles" in refusal(load_encoder, folder / name)


JUNK = [None, True, -1, 0, 10**30, 10**400, 1e308, float("nan"), "x", [], [[1], [1, 2]], {}]


def places(data: object, path: tuple = ()) -> list[tuple]:
    """Every path to a value inside plain data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    deeper = [
        place
        for key, value in inner
        if isinstance(value, dict | list)
        for place in places(value, (*path, key))
    ]
    keys = data if isinstance(data, dict) else range(len(data))
    return [(*path, key) for key in keys] + deeper


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:20])
def test_junk_anywhere_in_a_description_is_refused_or_harmless(folder, description, junk):
    for name in ("space", "encoder"):
        for path in places(description[name]):
            edited = copy.deepcopy(description)
            inside = edited[name]
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = junk
            seal(folder, edited)
            with contextlib.suppress(DemixError):
                assert load_encoder(folder)(torch.ones(2, 4)).shape == (2, 4)


def test_a_pipe_in_place_of_a_file_is_refused(folder):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    for name in ("model.safetensors", "model.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        refusal(load_encoder, folder)
