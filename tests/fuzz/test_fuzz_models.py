"""Model folders, on spoilt files and on forged ones whose checksums fit."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest
from files import files, spoilt
from hypothesis import given
from hypothesis import strategies as st
from reading import fuzzed, read_or_refused

import demix
from faults.forging import sealed

JUNK = [None, True, -1, 0, 2, 10**9, 10**30, 1e308, "x", "InstanceDemixer", "a" * 300, [], {}]
JUNK += [[[1], [1, 2]], {"kind": "Box", "dim": 2}, "\ud800", float("nan")]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model folder, its description and its weights."""
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    recipe = demix.Recipe(steps=1, batch=8)
    model = demix.ClassifierDemixer(2, encoder={"hidden": (4,)}, recipe=recipe)
    folder = tmp_path_factory.mktemp("fitted") / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, np.arange(60) % 3).save(folder)
    return folder, (folder / "model.json").read_bytes(), (folder / "model.safetensors").read_bytes()


def checked(folder, description: bytes, weights: bytes) -> str | None:
    """Read a folder of these files, as an estimator that is used; return why it was refused."""
    (folder / "model.json").write_bytes(description)
    (folder / "model.safetensors").write_bytes(weights)

    def use() -> None:
        model = demix.load_model(folder)
        model.transform(np.ones((2, 3), dtype=np.float32))

    read_or_refused(lambda: demix.load_encoder(folder))
    return read_or_refused(use)


def test_spoilt_descriptions_are_refused_or_read(fitted):
    folder, description, weights = fitted
    assert checked(folder, description, weights) is None

    @fuzzed
    @given(files(description, b'{"schema": 1, '))
    def check(raw: bytes) -> None:
        checked(folder, raw, weights)

    check()


def test_spoilt_weights_are_refused(fitted):
    folder, description, weights = fitted

    @fuzzed
    @given(spoilt(weights))
    def check(raw: bytes) -> None:
        assert raw == weights or checked(folder, description, raw) is not None

    check()


def test_spoilt_weights_with_a_checksum_are_refused_or_read(fitted):
    folder, description, weights = fitted

    @fuzzed
    @given(spoilt(weights))
    def check(raw: bytes) -> None:
        checked(folder, sealed(json.loads(description), raw), raw)

    check()


def test_forged_descriptions_are_refused_or_read(fitted):
    folder, description, weights = fitted

    def places(data: object, path: tuple = ()) -> list[tuple]:
        inner = data.items() if isinstance(data, dict) else enumerate(data)
        found = [((*path, key), value) for key, value in inner]
        deeper = [value for value in found if isinstance(value[1], dict | list)]
        return [place for place, _ in found] + [
            place for path, value in deeper for place in places(value, path)
        ]

    honest = json.loads(description)

    @fuzzed
    @given(st.sampled_from(places(honest)), st.sampled_from(JUNK), st.booleans())
    def check(place: tuple, junk: object, gone: bool) -> None:
        forged = copy.deepcopy(honest)
        inside = forged
        for key in place[:-1]:
            inside = inside[key]
        if gone:
            del inside[place[-1]]
        else:
            inside[place[-1]] = junk
        if {"space", "encoder", "about"} <= set(forged):
            checked(folder, sealed(forged, weights), weights)

    check()
