"""`demix fit`, `transform`, `report` and `compare` on files of every kind."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import zarr
from PIL import Image
from pyarrow import parquet

from command import MAIN
from demix import load_model

WRITTEN = ["fit.json", "latents.npy", "model.json", "model.safetensors", "report.html"]


def files_in(folder: Path) -> dict[str, str]:
    """Return what a folder holds, by checksum."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def write_csv(path: Path, walk: np.ndarray) -> None:
    lines = [",".join(map(repr, row)) for row in walk.astype(float).tolist()]
    path.write_text("\n".join(["a,b,c", *lines]) + "\n")


def write_zarr(path: Path, walk: np.ndarray) -> None:
    zarr.create_array(path, data=walk, chunks=(100, 3))


def write_parquet(path: Path, walk: np.ndarray) -> None:
    parquet.write_table(pyarrow.table(dict(zip("abc", walk.T, strict=True))), path)


WRITERS = {"csv": write_csv, "parquet": write_parquet, "zarr": write_zarr, "npy": np.save}


@pytest.fixture(scope="module")
def data(tmp_path_factory, walk) -> Path:
    """A folder with the walk in every format."""
    folder = tmp_path_factory.mktemp("data")
    for suffix, write in WRITERS.items():
        write(folder / f"walk.{suffix}", walk)
    return folder


@pytest.fixture(scope="module")
def fitted(demix, data, tmp_path_factory) -> Path:
    """What `demix fit` makes of the walk."""
    folder = tmp_path_factory.mktemp("fits") / "model"
    done = demix.run("fit", data / "walk.npy", "--n-latents", 2, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert "2 latents of 400 rows" in done.stdout
    assert "Information about held-out positives: " in done.stdout
    assert str(folder / "report.html") in done.stdout
    assert "warning" not in done.stderr
    return folder


def test_a_fit_leaves_a_model_its_latents_and_a_report(fitted, walk):
    assert list(files_in(fitted)) == WRITTEN
    model = load_model(fitted)
    assert model.gain_.above_zero
    latents = np.load(fitted / "latents.npy")
    assert latents.dtype == np.float32
    assert latents.tobytes() == model.transform(walk).tobytes()
    about = json.loads((fitted / "model.json").read_text())["about"]
    assert about["origin"]["data file"] == "walk.npy"
    assert about["origin"]["command"].startswith("demix fit ")
    page = (fitted / "report.html").read_text(encoding="utf-8")
    assert "Better than a guess on held-out data" in page
    assert about["data"] in page


@pytest.mark.parametrize("suffix", WRITERS)
def test_transform_gives_the_same_bits_from_every_format(demix, data, fitted, suffix, tmp_path):
    out = tmp_path / "z.npy"
    done = demix.run("transform", fitted, data / f"walk.{suffix}", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Wrote {out}: 400 rows of 2 latents.\n"
    assert np.load(out).tobytes() == np.load(fitted / "latents.npy").tobytes()
    assert list(files_in(tmp_path)) == ["z.npy"]


def test_fit_gives_the_same_weights_from_another_format(demix, data, fitted, tmp_path):
    options = ["--n-latents", 2, "--lag", 1, "--columns", "a,b,c", "--out", tmp_path / "model"]
    done = demix.run("fit", data / "walk.csv", *options, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    gain = json.loads((fitted / "model.json").read_text())["about"]["gain"]
    assert (told["estimator"], told["rows"], told["gain"]) == ("ContrastiveDemixer", 400, gain)
    assert told["parameters"]["n_latents"] == 2
    for name in ("model.safetensors", "latents.npy"):
        assert (tmp_path / "model" / name).read_bytes() == (fitted / name).read_bytes()


def test_a_folder_of_images_is_fitted_and_transformed(demix, tmp_path):
    # A bright bar that walks around the picture.
    where = np.cumsum(np.random.default_rng(0).normal(0, 0.8, 60)) % 8
    (tmp_path / "images").mkdir()
    for number, place in enumerate(where):
        gap = (np.arange(8) - place + 4) % 8 - 4
        pixels = np.repeat((255 * np.exp(-(gap**2)))[None], 8, axis=0)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "images" / f"{number:03}.png")
    options = ["--instances", "--n-latents", 2, "--out", tmp_path / "model"]
    code = "from demix.estimators.base import Demixer\nDemixer._most_steps = 60\n" + MAIN
    done = demix.run_python(code, "fit", tmp_path / "images", *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gain"]["low"] > 0
    transform = ["transform", tmp_path / "model", "--overwrite", "--out", tmp_path / "z.npy"]
    done = demix.run(*transform, tmp_path / "images")
    assert np.load(tmp_path / "z.npy").shape == (60, 2)
    assert "brighter" not in done.stderr
    files = sorted((tmp_path / "images").iterdir())
    bytes_ = np.stack([np.asarray(Image.open(file)) for file in files])[:, None]
    for pixels, told in ((bytes_, True), (bytes_ / 255, False), (bytes_ // 200, False)):
        np.save(tmp_path / "x.npy", pixels)
        done = demix.run(*transform, tmp_path / "x.npy")
        assert done.returncode == 0, done.stderr
        assert ("x.npy are brighter than the model knows" in done.stderr) == told


def test_labels_pairs_and_instances_have_their_estimators(demix, data, walk, tmp_path):
    quarters = np.array(["north", "east", "south", "west"])[
        (np.arctan2(walk[:, 1], walk[:, 0]) // (np.pi / 2)).astype(int)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["quarter", *quarters]) + "\n")
    np.save(tmp_path / "pairs.npy", np.stack([np.arange(399), np.arange(1, 400)], axis=1))
    for options, estimator in [
        (["--labels", tmp_path / "labels.csv"], "ClassifierDemixer"),
        (["--pairs", tmp_path / "pairs.npy", "--space", "box"], "ContrastiveDemixer"),
        (["--instances", "--seed", "3"], "InstanceDemixer"),
    ]:
        out = tmp_path / estimator
        # Only the classifier is asked what it has learnt.
        run = demix.run if estimator == "ClassifierDemixer" else demix.run_briefly
        done = run("fit", data / "walk.npy", "--n-latents", 2, *options, "--out", out)
        assert done.returncode == 0, done.stderr
        assert type(load_model(out)).__name__ == estimator
    classifier = load_model(tmp_path / "ClassifierDemixer")
    assert classifier.score(walk, quarters) > 0.9
    assert set(classifier.classes_) == set(quarters)
    assert load_model(tmp_path / "InstanceDemixer").random_state == 3
    assert type(load_model(tmp_path / "ContrastiveDemixer").encoder_.space).__name__ == "Box"


def test_odd_data_and_shuffled_time_are_warned_of_and_written(demix, walk, tmp_path):
    rows = np.random.default_rng(1).permutation(400)
    columns = [walk[rows], 1e6 * walk[rows, :1], np.ones((400, 1), np.float32)]
    odd = np.concatenate(columns, axis=1)
    odd[7] = odd[200]
    np.save(tmp_path / "odd.npy", odd)
    out = tmp_path / "model"
    done = demix.run("fit", tmp_path / "odd.npy", "--n-latents", 2, "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("warning")]
    assert len(lines) == 4
    for line, words in zip(
        lines,
        ["1 of 5 columns", "1 of 400 rows", "differ in scale by a factor", "is not above zero"],
        strict=True,
    ):
        assert words in line
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Not better than a guess on held-out data" in page
    about = json.loads((out / "model.json").read_text())["about"]
    assert about["gain"]["low"] <= 0
    assert len(about["notes"]) >= 5


def test_a_report_with_known_factors_says_how_well_they_are_recovered(
    demix, data, fitted, walk, tmp_path
):
    np.save(tmp_path / "factors.npy", walk[:, :2])
    before = files_in(fitted)
    options = ["--factors", tmp_path / "factors.npy", "--out", tmp_path / "page"]
    done = demix.run("report", fitted, *options)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "page" / "report.html"
    assert done.stdout == f"Wrote {page}\n"
    assert "affine R²" in page.read_text(encoding="utf-8")
    assert files_in(fitted) == before
    np.save(tmp_path / "few.npy", walk[:300])
    told = demix.refusal(
        "report", fitted, "--factors", tmp_path / "few.npy", "--out", tmp_path / "no"
    )
    assert "a row for each of the 400 fitted rows" in told
    assert not (tmp_path / "no").exists()


def test_fits_are_compared_on_one_page(demix, data, fitted, tmp_path):
    other, out = tmp_path / "other", tmp_path / "both"
    demix.run_briefly("fit", data / "walk.npy", "--n-latents", 2, "--seed", 1, "--out", other)
    for asked in ([], ["--overwrite"]):
        done = demix.run("compare", fitted, other, "--out", out, *asked)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"Wrote {out / 'report.html'}\n"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "2 fits side by side" in page
    assert "other" in page
    assert "Agreement of the latents" in page
    assert "at least 2 runs" in demix.refusal("compare", fitted, "--out", tmp_path / "no")
    assert "not a demix model folder" in demix.refusal(
        "compare", fitted, data, "--out", tmp_path / "no"
    )
    assert not (tmp_path / "no").exists()
    before = files_in(other)
    told = demix.refusal("compare", fitted, other, "--out", other)
    assert "holds something else" in told
    assert files_in(other) == before


def test_other_data_of_as_many_rows_are_not_taken_for_the_same(demix, data, fitted, walk, tmp_path):
    np.save(tmp_path / "other.npy", walk[::-1])
    for name, words in ((data / "walk.csv", "Wrote "), (tmp_path / "other.npy", "")):
        done = demix.run("report", fitted, "--data", name, "--out", tmp_path / f"page-{name.stem}")
        assert done.stdout.startswith(words)
    assert done.returncode == 2
    assert f"{fitted} was fitted to other data than {name}; give the same data." in done.stderr
    demix.run_briefly("fit", name, "--n-latents", 2, "--out", tmp_path / "other")
    done = demix.run("compare", fitted, tmp_path / "other", "--out", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    assert "Agreement of the latents" not in (tmp_path / "both" / "report.html").read_text()


def test_any_marginal_can_be_asked_for(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    options = ("--n-latents", 2, "--marginal", "any", "--out", tmp_path / "model")
    done = demix.run_briefly("fit", tmp_path / "x.npy", *options)
    assert done.returncode == 0, done.stderr
    about = json.loads((tmp_path / "model" / "model.json").read_text())["about"]
    assert about["parameters"]["marginal"] == "any"
    assert "any" in (tmp_path / "model" / "report.html").read_text()
