"""Files of unfinished work, on spoilt and forged ones: refused in a sentence or gone on from."""

from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest
import torch
from files import files
from hypothesis import given
from hypothesis import strategies as st
from reading import fuzzed, read_or_refused
from test_fuzz_models import JUNK

import demix
from benchmarks.calibration.command import _known
from benchmarks.calibration.processes import PROCESSES
from demix._support.outputs import claim_folder
from demix.papers.experiments import experiment_named
from demix.papers.runner.scales import scale_named
from demix.papers.runner.store import Store
from demix.papers.scenes.arrays import sealed as sealed_meta
from demix.papers.scenes.folder import open_rendered, render_folder
from demix.papers.scenes.order import Order
from demix.training.checkpoints import _read, _sealed

TABLE, SMOKE = experiment_named("clica-table1"), scale_named("smoke")
CELL = {"experiment": TABLE.name, "scale": SMOKE.name, "row": 2, "seed": 0, "model": "identity"}
RUN = {
    "process": PROCESSES[0].name,
    "seed": 0,
    "kept": PROCESSES[0].kept,
    "breaks": list(PROCESSES[0].breaks),
    "kind": "pairs",
    "verdicts": {"shape": "pass"},
    "statistics": {"shape": 0.5},
    "supported": "none",
    "relied_on": "orthogonal",
    **{"truth": 0.9, "claimed": None, "raw": 0.8},
    "seconds": 1.5,
}


def changed(data: object, junk: object, draw) -> object:
    """Return plain data with junk somewhere, or without something."""
    data = copy.deepcopy(data)
    inside, inner = None, data
    while isinstance(inner, dict | list) and inner and (inside is None or draw(st.booleans())):
        key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        inside, inner = inner, inner[key]
    if inside is not None:
        inside[key] = junk
    return data


def forged(honest: object, check) -> None:
    """Give a reader plain data that somebody has changed."""

    @fuzzed
    @given(st.data(), st.sampled_from(JUNK))
    def fuzz(data, junk: object) -> None:
        check(changed(honest, junk, data.draw))

    fuzz()


def test_forged_results_are_refused_or_read(tmp_path):
    def check(records: object) -> None:
        (tmp_path / "results.json").write_text(json.dumps(records))
        read_or_refused(lambda: Store(tmp_path, TABLE, SMOKE))

    check([CELL])
    forged([CELL, CELL | {"row": 3}], check)


def test_spoilt_results_are_refused_or_read(tmp_path):
    honest = json.dumps([CELL]).encode()

    @fuzzed
    @given(files(honest, b"["))
    def check(raw: bytes) -> None:
        (tmp_path / "results.json").write_bytes(raw)
        read_or_refused(lambda: Store(tmp_path, TABLE, SMOKE))

    check()


def test_forged_calibrations_are_refused_or_read(tmp_path):
    file = tmp_path / "calibration.json"

    def check(data: object) -> None:
        file.write_text(json.dumps(data))
        read_or_refused(lambda: _known(file))

    honest = {"runs": [RUN], "provenance": {"command": "python -m benchmarks.calibration"}}
    file.write_text(json.dumps(honest))
    assert _known(file) == [RUN]
    forged(honest, check)


def test_forged_markers_are_refused_or_read(tmp_path):
    def check(data: object) -> None:
        (tmp_path / "fit.json").write_text(json.dumps(data))
        read_or_refused(lambda: claim_folder(tmp_path, "fit.json", command="demix fit"))

    honest = {"unfinished": True, "provenance": {"command": "demix fit x.npy"}}
    check(honest)
    forged(honest, check)


def test_forged_scenes_are_refused_or_read(tmp_path):
    place = tmp_path / "images"
    render_folder(Order("sprites", n=4, size=8), place, jobs=1)
    honest = json.loads((place / "meta.json").read_text())

    def check(about: object) -> None:
        if isinstance(about, dict):
            (place / "meta.json").write_text(json.dumps(sealed_meta(about)))
            read_or_refused(lambda: open_rendered(place, verify=True))

    check(honest)
    forged(honest, check)
    shutil.rmtree(place)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_forged_checkpoints_are_refused_or_gone_on_from(tmp_path):
    place = tmp_path / "checkpoint.safetensors"
    x = np.random.default_rng(0).normal(size=(60, 3))

    def fit(steps: int) -> None:
        recipe = demix.Recipe(steps=steps, batch=16)
        demixer = demix.ContrastiveDemixer(2, recipe=recipe, encoder={"hidden": (4,)})
        demixer.fit(x, checkpoint=place)

    fit(2)
    tensors, facts = _read(place)

    def check(changed: object) -> None:
        given = {name: value.clone() for name, value in tensors.items()}
        place.write_bytes(_sealed(given, changed if isinstance(changed, dict) else facts))
        read_or_refused(lambda: fit(2))

    check(facts)
    forged(facts["state"], lambda state: check(facts | {"state": state}))

    @fuzzed
    @given(st.sampled_from(sorted(tensors)), st.sampled_from(["gone", "nan", "double", "wide"]))
    def spoil(name: str, how: str) -> None:
        other = dict(tensors)
        value = other.pop(name)
        if how == "nan" and value.is_floating_point():
            other[name] = torch.full_like(value, float("nan"))
        elif how == "double":
            other[name] = value.double()
        elif how == "wide":
            other[name] = torch.cat([value.reshape(-1), value.reshape(-1)])
        place.write_bytes(_sealed(other, facts))
        read_or_refused(lambda: fit(2))

    spoil()
