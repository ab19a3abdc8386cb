"""Table 4 runs on whatever images with known factors it is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import official
from demix import DemixError, Encoder
from demix.papers import Order, render_folder
from demix.papers.datasets.factor_images import ArrayPixels
from demix.papers.experiments import experiment_named
from demix.papers.reizinger2024.labelled_images import split_rows
from demix.papers.runner.experiment import InputFiles
from demix.papers.runner.job import open_inputs
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named

TABLE = experiment_named("ce-dislib")
MODELS = ["cnn", "input", "mlp", "untrained cnn", "untrained mlp"]


@pytest.fixture(scope="module")
def sprites(tmp_path_factory) -> Path:
    order = Order("sprites", n=240, size=16)
    return render_folder(order, tmp_path_factory.mktemp("scenes") / "sprites", jobs=1)


@pytest.fixture(scope="module")
def coil(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("photographs") / "coil.npz"
    official.write_coil(path, objects=4, angles=60, side=16)
    return path


@pytest.fixture(scope="module")
def run(sprites, coil, tmp_path_factory) -> tuple[Path, list]:
    out = tmp_path_factory.mktemp("table4") / "new"
    return out, reproduce(TABLE, out, scale=scale_named("smoke"), data=[sprites, coil])


def test_figures_are_those_of_the_paper():
    # Reizinger et al. (2024), Table 4: r from the input, an MLP and a CNN.
    published = {
        row.title: {
            factor: [figures[model] for model in ("input", "mlp", "cnn")]
            for factor, figures in row.paper.items()
        }
        for row in TABLE.rows
        if row.paper
    }
    assert published == {
        "dSprites": {
            "shape": [0.26, 0.94, 1.0], "scale": [0.62, 0.98, 0.92],
            "posX": [0.92, 0.97, 0.99], "posY": [0.92, 0.97, 0.99],
        },
        "Shapes3D": {
            "shape": [0.42, 1.0, 1.0], "scale": [0.21, 0.89, 0.99],
            "orientation": [0.04, 0.85, 0.93],
        },
        "MPI3D toy": {
            "object_shape": [0.03, 0.71, 0.97],
            "horizontal_axis": [0.28, 0.76, 0.9], "vertical_axis": [0.46, 0.76, 0.84],
        },
        "MPI3D real": {
            "object_shape": [0.19, 0.88, 0.98],
            "horizontal_axis": [0.14, 0.74, 0.83], "vertical_axis": [0.44, 0.54, 0.71],
        },
        "Cars3D": {"object_type": [0.05, 0.63, 0.77], "elevation": [0.15, 0.87, 0.78]},
        "smallNORB": {"category": [0.22, 0.94, 1.0], "elevation": [0.15, 0.83, 0.79]},
    }  # fmt: skip


def test_paper_scale_is_the_papers_training():
    for model, body in (("mlp", "perceptron"), ("cnn", "resnet18_linear")):
        encoder, objective, recipe = TABLE.rows[0].plan(
            scale_named("paper"), model, (1, 64, 64), classes=3, images=589_824
        )
        assert isinstance(encoder, Encoder)
        assert (encoder.settings["body"], encoder.space.dim) == (body, 512)
        assert objective.prototypes().shape == (3, 512)
        assert (recipe.optimizer, recipe.rate, recipe.batch) == ("adam", 1e-3, 4096)
        assert recipe.steps == 100 * 144  # 144 batches are an epoch


def test_every_model_reads_out_every_factor(run):
    _, records = run
    assert [(r["row"], r["model"]) for r in records] == [(n, m) for n in (8, 11) for m in MODELS]
    for record in records:
        names = {8: ["shape", "scale", "orientation", "x", "y"],
                 11: ["object", "angle", "angle within object"]}[record["row"]]  # fmt: skip
        assert list(record["readouts"]) == names
        for found in record["readouts"].values():
            for score in ("r", "r2"):
                value, low, high = found[score]
                assert low <= value <= high <= 1
            assert abs(found["chance"]) < 0.1
            assert 0 < found["p"] <= 1
        assert (record["accuracy"] is None) == (record["model"] not in ("mlp", "cnn"))
        assert record["images"] == {"train": 192, "validation": 24, "test": 24}


def test_what_pixels_show_plainly_is_read_out(run):
    _, records = run
    pixels = {record["row"]: record["readouts"] for record in records if record["model"] == "input"}
    for factor in ("x", "y"):
        assert pixels[8][factor]["r"][0] > 0.85
        assert pixels[8][factor]["p"] < 0.01
    # Each object begins to turn at another angle.
    across, within = (pixels[11][name]["r"][0] for name in ("angle", "angle within object"))
    assert within > 0.99 > across


def test_the_score_leaves_out_what_was_trained_on(run):
    _, records = run
    for record in records:
        counted = {8: ["scale", "orientation", "x", "y"], 11: ["angle within object"]}
        values = [record["readouts"][name]["r"][0] for name in counted[record["row"]]]
        assert record["r"] == pytest.approx(np.mean(values))


def test_the_table_has_a_line_for_each_factor(run):
    table = (run[0] / "table.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in table.splitlines() if line.startswith(("| 8", "| 11"))]
    assert [(line[1], line[2], line[3]) for line in lines] == [
        ("sprites", "shape", "categorical, trained on"),
        ("sprites", "scale", "continuous"),
        ("sprites", "orientation", "continuous"),
        ("sprites", "x", "continuous"),
        ("sprites", "y", "continuous"),
        ("COIL-100", "object", "categorical, trained on"),
        ("COIL-100", "angle", "periodic"),
        ("COIL-100", "angle within object", "periodic"),
    ]
    assert "| untrained CNN r | CNN r | MLP R² | CNN R² |" in table
    assert "Accuracy of the classifiers on images held out: sprites MLP " in table
    assert (run[0] / "figure.png").stat().st_size > 0


def test_a_published_figure_stands_in_brackets(tmp_path):
    path = tmp_path / official.DSPRITES
    official.write_dsprites(path, n=120, side=16)
    records = reproduce(TABLE, tmp_path / "new", scale=scale_named("smoke"), data=[path])
    assert {record["left_out"]["color"] for record in records} == {"it has one value only"}
    line = next(
        line for line in (tmp_path / "new" / "table.md").read_text("utf-8").splitlines()
        if line.startswith("| 1 | dSprites | posX ")
    )  # fmt: skip
    assert [cell[-6:] for cell in line.split(" | ") if "(" in cell] == [
        "(0.92)",
        "(0.97)",
        "(0.99)",
    ]


def test_parts_never_meet():
    split = split_rows(1000, seed=3)
    assert [len(part) for part in split] == [800, 100, 100]
    assert np.array_equal(np.sort(np.concatenate(split)), np.arange(1000))


def test_large_sets_are_thinned_and_slow_ones_read_once(tmp_path):
    pytest.importorskip("h5py", reason="the extra `papers` is not installed")
    images = official.write_mpi3d(tmp_path / "mpi3d_toy.npz")
    arrays = official.write_shapes3d(tmp_path / "3dshapes.h5", n=300)
    files = [tmp_path / "mpi3d_toy.npz", tmp_path / "3dshapes.h5"]
    opened = open_inputs(TABLE, InputFiles(files, scale_named("smoke")))
    few, whole = opened["mpi3d_toy"], opened["shapes3d"]
    assert len(few) == 400
    assert len(np.unique(few.factor("vertical_axis"))) == 40
    rows = few.values @ (np.prod([4, 4, 2, 3, 3, 40, 40]) / np.cumprod([4, 4, 2, 3, 3, 40, 40]))
    assert np.array_equal(few.read(np.arange(400)), images[rows.astype(int)])
    assert isinstance(whole.pixels, ArrayPixels)
    assert np.array_equal(whole.read(np.arange(300)), arrays["images"])


def test_images_that_a_network_cannot_take_are_refused(tmp_path):
    official.write_mpi3d(tmp_path / "mpi3d_toy.npz")
    with pytest.raises(DemixError, match="'compact' takes images of at least 16 x 16 pixels"):
        reproduce(
            TABLE, tmp_path / "new", scale=scale_named("smoke"), data=[tmp_path / "mpi3d_toy.npz"]
        )


def test_what_does_not_fit_is_said_before_anything_is_written(demix, sprites, coil, tmp_path):
    out = tmp_path / "no"
    told = demix.refusal("reproduce", "ce-dislib", "--out", out)
    assert "needs --data with official files of DisLib" in told
    told = demix.refusal("reproduce", "ce-dislib", "--data", tmp_path / "none.npz", "--out", out)
    assert "none.npz does not exist" in told
    told = demix.refusal("reproduce", "ce-dislib", "--rows", "1", "--data", sprites, "--out", out)
    assert "Row 1 of ce-dislib needs the data set dsprites" in told
    told = demix.refusal(
        "reproduce", "ce-dislib", "--data", sprites, "--data", sprites, "--out", out
    )
    assert "holds sprites, again" in told
    pytest.importorskip("embreex", reason="the extra `papers` is not installed")
    causal = render_folder(Order("causal3dident", n=2, size=16), tmp_path / "causal", jobs=1)
    told = demix.refusal("reproduce", "ce-dislib", "--data", causal, "--out", out)
    assert "which has no row" in told
    assert not out.exists()


def test_a_category_of_one_value_cannot_be_learnt(tmp_path):
    official.write_coil(tmp_path / "coil.npz", objects=1)
    with pytest.raises(DemixError, match="all 36 images of coil100 have one 'object'"):
        reproduce(TABLE, tmp_path / "new", scale=scale_named("smoke"), data=[tmp_path / "coil.npz"])
