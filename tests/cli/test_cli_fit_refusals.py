"""What `demix fit` and `transform` cannot use: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from demix import Encoder, Sphere, save_encoder


def rows_with(value: float):
    def write(folder: Path, walk: np.ndarray) -> list[object]:
        broken = walk.copy()
        broken[7, 1] = value
        np.save(folder / "x.npy", broken)
        return ["x.npy"]

    return write


def saved(name: str, make, *options: object):
    """Return what writes the walk and a second file beside it."""

    def write(folder: Path, walk: np.ndarray) -> list[object]:
        np.save(folder / "x.npy", walk)
        if name.endswith(".npy"):
            np.save(folder / name, make(walk))
        elif name:
            (folder / name).write_text(make(walk))
        return ["x.npy", *options]

    return write


def only(name: str, make):
    """Return what writes one file of data."""

    def write(folder: Path, walk: np.ndarray) -> list[object]:
        made = make(walk)
        if isinstance(made, bytes):
            (folder / name).write_bytes(made)
        else:
            np.save(folder / name, made)
        return [name]

    return write


def plain(*options: object):
    return saved("", None, *options)


def malicious(walk: np.ndarray) -> bytes:
    class Attack:
        def __reduce__(self):
            return (Path("attacked").write_text, ("yes",))

    return pickle.dumps(Attack())


BAD = {
    "nan": (rows_with(np.nan), "1 of 400 rows of .*x.npy hold NaN, infinity .* row 7, column 1"),
    "infinity": (rows_with(np.inf), "hold NaN, infinity .* row 7, column 1"),
    "constant": (only("x.npy", lambda walk: 0 * walk), "all of .*x.npy are constant"),
    "one row": (only("x.npy", lambda walk: walk[:1]), "at least 2 rows"),
    "few rows": (only("x.npy", lambda walk: walk[:8]), "at least 9 rows, but .* n_samples=8"),
    "one column": (only("x.npy", lambda walk: walk[:, 0]), r"has shape \(400,\)"),
    "text": (only("x.csv", lambda walk: b"a,b\n1,2\n3,four\n"), "'four'"),
    "csv as npy": (only("x.npy", lambda walk: b"a,b\n1,2\n"), "looks like a text file"),
    "npy as csv": (only("x.csv", lambda walk: b"\x93NUMPY\x01\x00"), "looks like a numpy array"),
    "pickle": (only("x.npy", malicious), "looks like a binary file of another kind"),
    "objects": (only("x.npy", lambda walk: walk.astype(object)), "object"),
    "unknown kind": (only("x.doc", lambda walk: b"hello"), "x.doc"),
    "no file": (lambda folder, walk: ["nowhere.npy"], "nowhere.npy does not exist"),
    "pairs outside": (
        saved("p.npy", lambda walk: np.array([[0, 1], [2, 400]]), "--pairs", "p.npy"),
        "1 of 2 point outside the data, the first of them pair 1",
    ),
    "pairs with themselves": (
        saved("p.npy", lambda walk: np.array([[1, 1], [2, 2]]), "--pairs", "p.npy"),
        "pair a row with itself",
    ),
    "pairs of fractions": (
        saved("p.npy", lambda walk: np.ones((5, 2)), "--pairs", "p.npy"),
        "whole row numbers",
    ),
    "time runs back": (
        saved("t.npy", lambda walk: np.arange(400.0)[::-1], "--time", "t.npy"),
        "Expected rows in the order of time, but row 1",
    ),
    "short time": (
        saved("t.csv", lambda walk: "t\n1\n2\n", "--time", "t.csv"),
        "400 rows, but .*t.csv has 2 moments",
    ),
    "one class": (
        saved("y.npy", lambda walk: np.ones(400, int), "--labels", "y.npy"),
        "at least 2 classes",
    ),
    "short labels": (
        saved("y.npy", lambda walk: np.arange(399) % 2, "--labels", "y.npy"),
        "400 rows, but .*y.npy has 399 labels",
    ),
    "labels of fractions": (
        saved("y.csv", lambda walk: "0.5\n1\n", "--labels", "y.csv"),
        "whole numbers or text",
    ),
    "long lag": (plain("--lag", "200"), "at least 606 rows"),
    "lag": (plain("--lag", "1:x"), "--lag takes a number or a range such as 1:5, but got '1:x'"),
    "lag of 0": (plain("--lag", "0"), "lag must be a whole number >= 1"),
    "no latents": (plain("--n-latents", "0"), "n_latents must be a whole number from 1"),
    "more latents than rows": (plain("--n-latents", "10000"), "--n-latents must be at most"),
    "latents without end": (plain("--n-latents", "10001"), "whole number from 1 to 10000"),
    "space": (plain("--space", "torus"), "torus"),
    "conditional": (plain("--conditional", "cauchy"), "conditional must be"),
    "low shape": (plain("--conditional", "0.5"), "conditional must be"),
    "shape that is none": (plain("--conditional", "nan"), "conditional must be"),
    "infinite shape": (plain("--conditional", "inf"), "conditional must be"),
    "vmf off the sphere": (plain("--conditional", "vmf", "--space", "box"), "lives on a sphere"),
    "seed": (plain("--seed", "-1"), "A seed must be"),
    "seed that repeats another": (plain("--seed", 2**32 + 5), "to 2.32 - 1, but got 4294967301"),
    "key": (plain("--key", "x"), "A key chooses from"),
    "columns": (plain("--columns", "a"), "Columns are chosen from"),
    "two sources": (plain("--lag", "1", "--instances"), "one source, but got --lag and --inst"),
    "conditional of rows": (
        plain("--instances", "--conditional", "normal"),
        "A conditional describes pairs, but got --instances",
    ),
    "logits without labels": (plain("--logits", "quadratic"), "leave --logits out"),
    "logits": (
        saved("y.npy", lambda walk: np.arange(400) % 2, "--labels", "y.npy", "--logits", "cubic"),
        'logits must be "linear" or, in space="real", "quadratic", but got .cubic. in Real',
    ),
    "marginal": (plain("--marginal", "all"), 'marginal must be "uniform" or "any"'),
    "marginal of rows": (
        plain("--instances", "--marginal", "any"),
        "A marginal describes pairs, but got --instances",
    ),
}


def test_what_cannot_be_fitted_is_refused_and_nothing_is_written(demix, walk, tmp_path):
    commands = []
    for number, (write, _) in enumerate(BAD.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        file, *options = write(folder, walk)
        beside = [folder / o if (folder / str(o)).is_file() else o for o in options]
        commands.append(["fit", folder / file, *beside, "--out", folder / "deep" / "new"])
    before = sorted(tmp_path.rglob("*"))
    for told, (name, (_, words)) in zip(demix.refusals(commands), BAD.items(), strict=True):
        assert re.search(words, told), (name, told)
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("attacked").exists()


@pytest.mark.parametrize("option", ["--lag", "--n-latents"])
def test_an_empty_folder_stays_empty(demix, walk, tmp_path, option):
    np.save(tmp_path / "x.npy", walk)
    (tmp_path / "empty").mkdir()
    demix.refusal("fit", tmp_path / "x.npy", option, 0, "--out", tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir())


def test_a_folder_of_something_else_is_left_alone(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("my own page")
    told = demix.refusal("fit", tmp_path / "x.npy", "--out", tmp_path / "mine")
    assert "mine holds something else (it is not empty and has no fit.json of 'demix fit')" in told
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["report.html"]
    assert "is a file" in demix.refusal("fit", tmp_path / "x.npy", "--out", tmp_path / "x.npy")


@pytest.fixture
def model(tmp_path) -> Path:
    """A model folder for rows of 3 numbers."""
    save_encoder(Encoder(3, Sphere(2), hidden=(8, 8)), tmp_path / "model")
    return tmp_path / "model"


def damage(model: Path, kind: str) -> None:
    weights, description = model / "model.safetensors", model / "model.json"
    if kind == "truncated":
        weights.write_bytes(weights.read_bytes()[:-8])
    elif kind == "oversized":
        weights.write_bytes(weights.read_bytes() + bytes(100_000))
    elif kind == "edited":
        description.write_text(description.read_text().replace('"silu"', '"gelu"'))
    elif kind == "newer":
        text = description.read_text().replace('"schema": 1', '"schema": 2')
        description.write_text(text.replace('"demix": "', '"demix": "9'))
    elif kind == "pickled":
        (model / "model.pt").write_bytes(malicious(np.empty(0)))
    elif kind == "gone":
        weights.unlink()
    elif kind == "no folder":
        model.rename(model.parent / "elsewhere")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("truncated", "do not match their checksum"),
        ("oversized", "too many for what model.json describes"),
        ("edited", "do not match their checksum"),
        ("newer", "open it with the version that wrote it, demix 9"),
        ("pickled", "demix never opens pickles"),
        ("gone", "is not a demix model folder"),
        ("no folder", "model does not exist"),
    ],
)
def test_a_damaged_model_is_refused_and_nothing_is_written(
    demix, model, walk, tmp_path, kind, words
):
    np.save(tmp_path / "x.npy", walk)
    np.save(model / "latents.npy", walk)
    damage(model, kind)
    before = sorted(tmp_path.rglob("*"))
    commands = [
        ["transform", model, tmp_path / "x.npy", "--out", tmp_path / "z.npy"],
        ["report", model, "--out", tmp_path / "page"],
        ["compare", model, model, "--out", tmp_path / "page"],
        ["export", model, "--onnx", tmp_path / "model.onnx"],
    ]
    for told in demix.refusals(commands):
        assert words in told
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_bare_encoder_has_no_fit_to_tell_of(demix, model, walk, tmp_path, command):
    np.save(model / "latents.npy", walk)
    runs = [model] if command == "report" else [model, model]
    told = demix.refusal(command, *runs, "--out", tmp_path / "page")
    assert "holds a bare encoder; expected a folder of 'demix fit'" in told
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("change", "out", "words"),
    [
        (lambda x: x[:, :2], "z.npy", r"rows of shape \[3\], which the model takes, but got \[2\]"),
        (lambda x: np.where(x == x[5, 0], np.nan, x), "z.npy", r"in rows 0\.\.399; remove or"),
        (lambda x: x, "z.csv", r"must name a new \.npy file in an existing folder"),
        (lambda x: x, "nowhere/z.npy", r"must name a new \.npy file in an existing folder"),
        (lambda x: x.astype(complex), "z.npy", "Expected real numbers"),
    ],
    ids=["narrow", "nan", "suffix", "folder", "complex"],
)
def test_what_cannot_be_transformed_is_refused(demix, model, walk, tmp_path, change, out, words):
    np.save(tmp_path / "x.npy", change(walk))
    before = sorted(tmp_path.rglob("*"))
    told = demix.refusal("transform", model, tmp_path / "x.npy", "--out", tmp_path / out)
    assert re.search(words, told), told
    assert sorted(tmp_path.rglob("*")) == before


def test_json_is_all_that_a_program_reads(demix, walk, tmp_path):
    # So few rows that nothing is known of the spread: JSON has no word for infinity.
    np.save(tmp_path / "x.npy", walk[:12])
    done = demix.run("fit", tmp_path / "x.npy", "--out", tmp_path / "model", "--json")
    assert done.returncode == 0, done.stderr

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads(done.stdout, parse_constant=refuse)
