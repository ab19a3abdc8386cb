"""The examples run, in reduced size, and find what they say they find."""

from __future__ import annotations

import importlib
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import demix

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)


def run(name: str, folder: Path, *more: str) -> dict:
    """Run an example in reduced size, and return what it kept."""
    found = importlib.import_module(name).main(["--quick", "--out", str(folder), *more])
    kept = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert kept["table"]["rows"] == found["table"]["rows"]
    assert (folder / f"{name}.svg").stat().st_size < 100_000
    return kept


@pytest.mark.slow
def test_the_time_of_the_year_is_recovered(tmp_path):
    pytest.importorskip("statsmodels", reason="the extra `examples` is not installed")
    error, chance = run("time_series", tmp_path)["errors"]["demix"]
    assert error < 30 < 80 < chance


@pytest.mark.slow
def test_digits_are_named_and_two_fits_agree(tmp_path):
    kept = run("class_labels", tmp_path)
    assert kept["accuracy"] > 0.8
    (agreement, chance), *_ = kept["scores"].values()
    assert agreement > 0.3 > 0.1 > chance


@pytest.mark.slow
def test_latents_of_digits_tell_less_than_pixels_of_what_no_label_tells(tmp_path):
    scores = run("probing", tmp_path, "--files", str(tmp_path / "files"))["scores"]
    assert scores["latents"]["digit"]["value"] > 0.8
    for features in scores.values():
        assert features["noise"]["bonferroni"] > 0.05 > features["slant"]["bonferroni"]
    assert scores["latents"]["slant"]["value"] < 0.9 < scores["pixels"]["slant"]["value"]
    # The same files through the readers of the command line give the same numbers.
    known = demix.read_factors(tmp_path / "files" / "factors.csv")
    found = demix.probe(np.load(tmp_path / "files" / "latents.npy"), known)
    assert found["slant"].read_out.tested.value == pytest.approx(
        scores["latents"]["slant"]["value"], abs=1e-6
    )


@pytest.mark.slow
def test_the_angle_of_a_turntable_is_recovered(tmp_path):
    data = os.environ.get("DEMIX_COIL100", "")
    if not Path(data or "coil100").exists():
        pytest.skip("COIL-100 is not there: DEMIX_COIL100 names no coil100_64x64_webp.npz")
    (found,) = run("turntable", tmp_path, "--data", data)["objects"].values()
    assert found["error"] < 75 < 80 < found["chance"]


def bar(angle: int) -> Image.Image:
    """A picture that looks different from all sides: a bright spot on a circle."""
    x, y = np.mgrid[:32, :32] - 15.5
    a = np.radians(angle)
    spot = np.exp(-((x - 9 * np.cos(a)) ** 2 + (y - 9 * np.sin(a)) ** 2) / 30)
    return Image.fromarray((255 * spot[..., None] * [1, 0.8, 0.6]).astype(np.uint8))


@pytest.mark.slow
def test_the_turntable_runs_without_the_photographs(tmp_path, monkeypatch):
    """Pictures of a spot, in the form of the official folder and in that of the archive."""
    folder, archive = tmp_path / "coil", tmp_path / "coil.npz"
    folder.mkdir()
    files, angles = [], list(range(0, 360, 5))
    for angle in angles:
        picture, buffer = bar(angle), io.BytesIO()
        picture.save(folder / f"obj17__{angle}.png")
        picture.save(buffer, "WEBP", lossless=True)
        files.append(buffer.getvalue())
    np.savez(
        archive,
        data=np.frombuffer(b"".join(files), np.uint8),
        offset=np.cumsum([0, *map(len, files)]),
        object_id=np.full(len(angles), 17),
        angle_deg=np.array(angles),
    )
    turntable = importlib.import_module("turntable")
    views, _ = turntable.stacked(turntable.read(archive)[17])
    again, _ = turntable.stacked(turntable.read(folder)[17])
    assert np.array_equal(views, again)
    # Which of several fits is the best is of no interest here.
    monkeypatch.setattr(turntable, "best_of", lambda count, fit, seed: fit(seed))
    (found,) = run("turntable", tmp_path, "--data", str(archive))["objects"].values()
    # A spot on a circle is found by linear methods, too, which need no lucky start.
    assert found["linear"] < 5 < 80 < found["chance"]
    assert 0 <= found["error"] <= 180
