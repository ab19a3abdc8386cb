"""Estimators in model folders: they come back to the bit, and nothing else is let in."""

from __future__ import annotations

import json
import pickle
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load, save

import demix
from demix import (
    Box,
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    Encoder,
    InstanceDemixer,
    Recipe,
    Sphere,
    checkup,
    consensus,
    export_onnx,
    load_encoder,
    load_model,
    save_encoder,
)
from faults.forging import sealed
from refusals import refusal
from walks import TINY, sphere_walk

pytestmark = pytest.mark.filterwarnings("ignore::demix.DemixWarning")

Z, X = sphere_walk(200)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Z[:, 0], [-0.4, 0.4])]
FITS = {
    "time": lambda: ContrastiveDemixer(2, lag=(1, 3), **TINY).fit(X),
    "any marginal": lambda: ContrastiveDemixer(2, marginal="any", **TINY).fit(X),
    "dynamics": lambda: ContrastiveDemixer(2, space="real", conditional="dynamics", **TINY).fit(X),
    "auto": lambda: ContrastiveDemixer(2, space="box", conditional="auto", **TINY).fit(X),
    "labels": lambda: ClassifierDemixer(2, noise=0.1, unit_prototypes=True, **TINY).fit(X, LABELS),
    "instances": lambda: InstanceDemixer(np.int64(2), space=Sphere(2), **TINY).fit(X),
}
every_fit = pytest.mark.parametrize("name", FITS)


@cache
def made(name: str):
    """Return a fit, which no test is to change."""
    return FITS[name]()


def written(name: str, folder: Path) -> Path:
    made(name).save(folder)
    return folder


def seal(folder: Path, **edits) -> None:
    """Edit the description, and give it checksums that fit, as somebody who means harm would."""
    path = folder / "model.json"
    description = {**json.loads(path.read_text()), **edits}
    if "head" in edits and not edits["head"]:
        del description["head"]
    path.write_bytes(sealed(description, (folder / "model.safetensors").read_bytes()))


def plain(parameters: dict) -> str:
    """Return parameters as text in which lists are like tuples and NumPy's numbers like others."""
    return json.dumps(parameters, default=lambda x: x.item() if hasattr(x, "item") else repr(x))


def description_of(folder: Path) -> dict:
    return json.loads((folder / "model.json").read_text())


@every_fit
def test_an_estimator_comes_back_to_the_bit(name, tmp_path):
    fitted = made(name)
    fitted.save(tmp_path / "deep" / "model", about={"why": "a test"})
    loaded = load_model(tmp_path / "deep" / "model")
    assert type(loaded) is type(fitted)
    assert plain(loaded.get_params()) == plain(fitted.settled().get_params())
    assert loaded.transform(X).tobytes() == fitted.transform(X).tobytes()
    for kept in ("gain_", "history_", "best_step_", "n_steps_", "notes_", "digest_"):
        assert getattr(loaded, kept) == getattr(fitted, kept)
    assert description_of(tmp_path / "deep" / "model")["about"]["why"] == "a test"
    names = sorted(file.name for file in (tmp_path / "deep" / "model").iterdir())
    assert names == ["model.json", "model.safetensors"]


@pytest.mark.parametrize(
    "odd",
    [
        {"recipe": Recipe(steps=np.int64(2), batch=np.int32(16), rate=np.float32(0.01))},
        {"encoder": {"hidden": np.array([8, 8]), "scale": np.float32(2), "residual": np.True_}},
        {"encoder": {"hidden": (8, 8), "residual": 1, "components": True}},
        {"encoder": {"hidden": range(8, 10), "residual": False, "batch_norm": None}},
        {"space": "box", "conditional": Fraction(5, 2)},
    ],
)
def test_parameters_of_odd_types_come_back(odd, tmp_path):
    fit = ContrastiveDemixer(**{"n_latents": 2, **TINY, **odd}).fit(X)
    fit.save(tmp_path)
    back = load_model(tmp_path)
    np.testing.assert_array_equal(back.transform(X), fit.transform(X))
    assert back.setting() == fit.setting()
    assert (back.recipe, back.conditional) == (fit.recipe, fit.settled().conditional)


def test_a_finished_fit_of_the_command_line_is_not_mixed_with_another(tmp_path):
    (tmp_path / "fit.json").write_text('{"provenance": {}}')
    with pytest.raises(DemixError, match=r"holds a finished 'demix fit', .* another folder\.$"):
        made("time").save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.json"]


def test_a_classifier_comes_back_with_its_head(tmp_path):
    fitted = made("labels")
    fitted.save(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
    assert loaded.classes_.tolist() == ["high", "low", "middle"]
    assert loaded.prototypes_.tobytes() == fitted.prototypes_.tobytes()
    assert loaded.score(X, LABELS) == fitted.score(X, LABELS)


def test_a_learnt_conditional_comes_back(tmp_path):
    fitted = made("auto")
    fitted.save(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.shape_ == fitted.shape_ != 2
    assert loaded.scales_.tolist() == fitted.scales_.tolist()
    assert loaded.gain(X) == fitted.gain(X)


@every_fit
def test_a_loaded_estimator_learns_on(name, tmp_path):
    loaded = load_model(written(name, tmp_path))
    before = loaded.transform(X)
    loaded.partial_fit(*((X, LABELS) if name == "labels" else (X,)))
    assert loaded.transform(X).shape == before.shape
    assert not np.array_equal(loaded.transform(X), before)


def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2 + torch.rand_like(x)


@pytest.mark.parametrize("kind", [ContrastiveDemixer, InstanceDemixer])
def test_a_lost_augmentation_is_asked_for(kind, tmp_path):
    fitted = kind(2, augmentation=halved, **TINY).fit(X)
    fitted.save(tmp_path / "first")
    load_model(tmp_path / "first").save(tmp_path / "second")
    loaded = load_model(tmp_path / "second")
    assert loaded.transform(X).tobytes() == fitted.transform(X).tobytes()
    with pytest.raises(DemixError, match=r"augmentation halved, .* set_params\(augmentation="):
        loaded.partial_fit(X)
    with pytest.raises(DemixError, match="set it again"):
        checkup(loaded, X, refits=False)
    loaded.set_params(augmentation=halved).partial_fit(X)


def test_a_drawn_seed_comes_back_with_its_held_out_rows(tmp_path):
    fitted = ContrastiveDemixer(2, **TINY | {"random_state": np.random.RandomState(3)}).fit(X)
    fitted.save(tmp_path)
    held = [model.source(X).units["test"].tolist() for model in (fitted, load_model(tmp_path))]
    assert held[0] == held[1] == fitted.source(X).units["test"].tolist()


def test_names_of_columns_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    ContrastiveDemixer(2, **TINY).fit(frame).save(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    loaded.transform(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[["b", "a", "c"]])


def test_load_encoder_opens_a_fitted_folder(tmp_path):
    fitted = made("labels")
    fitted.save(tmp_path)
    with torch.no_grad():
        latents = load_encoder(tmp_path)(torch.from_numpy(X))
    assert latents.numpy().tobytes() == fitted.transform(X).tobytes()


def test_a_bare_encoder_is_refused(tmp_path):
    save_encoder(Encoder(3, Box(2), hidden=(8,)), tmp_path)
    assert refusal(load_model, tmp_path).endswith(
        "holds a bare encoder and no estimator; open it with load_encoder."
    )


@every_fit
def test_truncated_weights_are_refused(name, tmp_path):
    path = written(name, tmp_path) / "model.safetensors"
    for kept in (0, 100, -4):
        path.write_bytes(path.read_bytes()[:kept])
        assert re.search("too few for what|checksum", refusal(load_model, tmp_path))


@pytest.mark.parametrize(
    "edit",
    [
        lambda about: about["classes"].reverse(),
        lambda about: about["parameters"].update(noise=0.9),
        lambda about: about["gain"].update(low=3.0),
    ],
    ids=["classes", "parameters", "gain"],
)
def test_an_edited_description_is_refused(edit, tmp_path):
    description = description_of(written("labels", tmp_path))
    edit(description["about"])
    (tmp_path / "model.json").write_text(json.dumps(description))
    assert "do not match their checksum" in refusal(load_model, tmp_path)
    with pytest.raises(DemixError, match="checksum"):
        load_encoder(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        {"parameters": {"more": 1}},
        {"parameters": {"noise": 7}},
        {"parameters": {"recipe": {"speed": 1}}},
        {"parameters": {"space": {"kind": "Torus", "dim": 2}}},
        {"parameters": None},
        {"classes": ["one", "two"]},
        {"classes": []},
        {"gain": {"bits": 1.0}},
        {"best_step": "late"},
        {"history": None},
    ],
    ids=str,
)
def test_a_description_of_no_estimator_is_refused(edit, tmp_path):
    about = description_of(written("labels", tmp_path))["about"]
    if isinstance(edit.get("parameters"), dict):
        edit = {"parameters": about["parameters"] | edit["parameters"]}
    seal(tmp_path, about=about | edit)
    told = refusal(load_model, tmp_path)
    assert "does not describe a fitted ClassifierDemixer: " in told or told.startswith("Expected ")
    load_encoder(tmp_path)  # the encoder itself is whole


def test_another_head_is_refused(tmp_path):
    description = description_of(written("labels", tmp_path))
    path = tmp_path / "model.safetensors"
    honest = path.read_bytes()
    for head in (
        {"weight": [3, 5], "bias": [3]},
        {"weight": [10**6, 10**6]},
        {"weight": "x"},
        ["x"],
    ):
        seal(tmp_path, head=head)
        assert "does not hold the model it describes" in refusal(load_model, tmp_path)
    # A head of other numbers, which the description fits.
    tensors = load(honest)
    for shape in ((4, 2), (3, 3)):
        rows, bias = torch.zeros(shape), torch.zeros(shape[0])
        path.write_bytes(save(tensors | {"head.weight": rows, "head.bias": bias}))
        seal(tmp_path, **description | {"head": {"weight": [*shape], "bias": [shape[0]]}})
        assert "does not describe a fitted ClassifierDemixer: " in refusal(load_model, tmp_path)
    # None at all, which would predict at random.
    path.write_bytes(save({k: x for k, x in tensors.items() if not k.startswith("head.")}))
    seal(tmp_path, **description | {"head": {}})
    assert "does not describe a fitted ClassifierDemixer: " in refusal(load_model, tmp_path)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    class Attack:
        def __reduce__(self):
            return (Path(tmp_path / "attacked").write_text, ("yes",))

    attack = pickle.dumps(Attack())
    folder = written("time", tmp_path / "model")
    (folder / "model.safetensors").write_bytes(attack)
    refusal(load_model, folder)
    for name in ("model.pt", "model.pkl", "model.joblib"):
        (folder / name).write_bytes(attack)
        assert "demix never opens pickles" in refusal(load_model, folder)
        assert "demix never opens pickles" in refusal(load_model, folder / name)
        (folder / name).unlink()
    torch.save({"weights": 1}, tmp_path / "model.pth")
    refusal(load_model, tmp_path / "model.pth")
    assert not (tmp_path / "attacked").exists()


def test_nothing_in_the_package_opens_pickles():
    # What workers send each other is no file; torch reads weights only, and executes nothing.
    torchs = r"torch\.load\b(?!.*weights_only=True)"
    opens = rf"\bimport joblib|\b(pickle|joblib)\.load\b|{torchs}|allow_pickle=True"
    for file in Path(demix.__file__).parent.rglob("*.py"):
        assert not re.search(opens, file.read_text(encoding="utf-8")), file


def test_what_is_not_fitted_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ContrastiveDemixer(recipe=Recipe(steps=1)).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_null_byte_in_a_name_is_told(tmp_path):
    model = made("time")
    for write, name in ((model.save, "a\0b"), (model.report, "a\0.html")):
        with pytest.raises(DemixError, match=r"the name of a file, but .* has a null byte"):
            write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


LONG = "a" * 300


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.save(LONG),
        lambda model: save_encoder(model.encoder_, LONG),
        lambda model: model.report(LONG),
        lambda model: export_onnx(model.encoder_, LONG),
        lambda model: model.fit(X, checkpoint=LONG),
        lambda model: model.fit(X, checkpoint="a" * 250),  # the previous one has a longer name
        lambda model: consensus(model, np.tile(X, (4, 1)), 2, checkpoint=LONG),
        lambda model: load_model(LONG),
        lambda model: load_encoder(LONG),
    ],
)
def test_a_name_that_is_too_long_is_told(use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DemixError, match=r"^(Cannot write )?a{200}.*: .*too long.*\.$"):
        use(made("time"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", [None, np.nan, "NA", ""])
@pytest.mark.parametrize("kind", [list, pandas.Series, np.array, lambda x: np.array(x, object)])
def test_a_missing_label_is_told(missing, kind):
    labels = [*map(str, LABELS[:-1]), missing]
    with pytest.raises(DemixError, match=rf"of row 199 .* missing \('{missing}|nan'\)"):
        ClassifierDemixer(2, **TINY).fit(X, kind(labels))
