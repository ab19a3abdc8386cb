"""Folders of images: the same bytes however they come about, and refusals in a sentence."""

from __future__ import annotations

import contextlib
import json
import os
import warnings

import numpy as np
import pytest

from demix import DemixError, DemixWarning
from demix.papers import (
    Order,
    open_factor_images,
    open_rendered,
    render,
    render_folder,
    sample_latents,
)
from demix.papers.scenes.arrays import sealed

ORDER = Order("sprites", n=600, size=16, seed=5, pairs="normal:0.1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of three shards, rendered at once by one process."""
    return render_folder(ORDER, tmp_path_factory.mktemp("scenes") / "whole", jobs=1)


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of it, to be spoilt."""
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def arrays(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.npy")}


def edit(folder, **changes: object) -> None:
    about = json.loads((folder / "meta.json").read_text()) | changes
    # As many as are said to be rendered, in shards of 256.
    about["sha256"]["shards"] = about["sha256"]["shards"][: -(-about["rendered"] // 256)]
    (folder / "meta.json").write_text(json.dumps(sealed(about)))


def test_it_holds_images_of_its_latents(whole):
    found = open_rendered(whole)
    assert (found.latents == sample_latents("sprites", 600, seed=5)).all()
    rows = [0, 255, 256, 599]
    assert (found.images[rows] == render("sprites", found.latents[rows], 16)).all()
    assert (found.positives[rows] == render("sprites", found.positive_latents[rows], 16)).all()
    assert found.names == ("shape", "scale", "orientation", "x", "y")
    assert found.categories == {"shape": ["square", "ellipse", "heart"]}
    assert found.order == ORDER
    assert isinstance(found.images, np.memmap)


def test_many_processes_write_the_same_bytes(whole, tmp_path):
    seen: list[int] = []
    render_folder(ORDER, tmp_path / "many", jobs=2, callback=seen.append)
    assert arrays(tmp_path / "many") == arrays(whole)
    assert seen == [0, 256, 512, 600]


def test_an_unfinished_folder_gives_what_it_has_and_is_finished(whole, copy):
    edit(copy, rendered=256)
    with (copy / "images.npy").open("r+b") as file:
        file.seek(-344 * 16 * 16 * 3, 2)
        file.write(bytes(344 * 16 * 16 * 3))
    with pytest.warns(DemixWarning, match="holds 256 of 600 images so far"):
        found = open_rendered(copy)
    assert len(found.images) == len(found.positive_latents) == 256
    seen: list[int] = []
    render_folder(ORDER, copy, jobs=1, callback=seen.append)
    assert seen == [256, 512, 600]
    assert arrays(copy) == arrays(whole)


def test_a_finished_folder_is_left_alone(copy):
    before = {file.name: file.stat().st_mtime_ns for file in copy.iterdir()}
    render_folder(ORDER, copy)
    assert {file.name: file.stat().st_mtime_ns for file in copy.iterdir()} == before


def test_a_folder_of_another_order_is_refused(copy):
    with pytest.raises(DemixError, match=r"holds images of n 600, seed 5, but got n 9, seed 0;"):
        render_folder(Order("sprites", n=9, size=16, pairs="normal:0.1"), copy)


def test_other_versions_do_not_go_on(copy):
    edit(copy, rendered=256, renderer={"demix": "0.0.1", "numpy": "1.0"})
    with pytest.raises(
        DemixError, match=r"was begun with demix 0.0.1, numpy 1.0, and .* new folder"
    ):
        render_folder(ORDER, copy)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(DemixError, match="holds something else"):
        render_folder(ORDER, tmp_path)
    with pytest.raises(DemixError, match="Expected a folder that 'demix render' wrote"):
        open_rendered(tmp_path)


def test_what_will_not_fit_is_refused_before_it_begins(tmp_path):
    folder = tmp_path / "new"
    with pytest.raises(DemixError, match=r"needs \S+ TB on the disk of .*, but \S+ .B are free;"):
        render_folder(Order("sprites", n=10**9, size=256), folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scene": "kettles"}, "Unknown scene 'kettles'"),
        ({"n": 0}, r"images must be from 1 to below 2\^53, but got 0\."),
        ({"size": 9999}, "from 1 to 1024, but got 9999"),
        ({"seed": -1}, "A seed must be"),
        ({"pairs": "vmf:2"}, "Pairs are given as normal:SIGMA"),
        ({"engine": "povray"}, "Engines are embree and blender, but got 'povray'"),
        ({"engine": "blender"}, "renders 3dident and causal3dident, but got sprites"),
    ],
)
def test_orders_that_cannot_be_filled_are_refused(change, sentence, tmp_path):
    with pytest.raises(DemixError, match=sentence):
        render_folder(Order(**({"scene": "sprites", "n": 3} | change)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def flip(file, place: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[place] ^= 16
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("name", "place", "seen"),
    [
        ("images.npy", -1, [600, 600]),
        ("images.npy", 200, [600, 600]),
        ("images.npy", 9, [600]),  # of the header
        ("positives.npy", 300 * 16 * 16 * 3, [600, 600]),
        ("latents.npy", 500, [600]),
    ],
)
def test_damage_is_found_and_mended(whole, copy, name, place, seen):
    flip(copy / name, place)
    with pytest.raises(DemixError, match=r"damaged|truncated"):
        open_rendered(copy, verify=True)
    told: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        render_folder(ORDER, copy, jobs=1, callback=told.append)
    assert told == seen
    assert [str(w.message).partition(" in ")[0] for w in caught] == (
        ["88 images" if place == -1 else "256 images"] if len(seen) > 1 else []
    )
    assert arrays(copy) == arrays(whole)
    open_rendered(copy, verify=True)


@pytest.mark.parametrize("size", [0, 50, 100_000])
def test_a_torn_file_is_mended(whole, copy, size):
    os.truncate(copy / "images.npy", size)
    with pytest.warns(DemixWarning, match="are damaged; they are rendered again"):
        render_folder(ORDER, copy, jobs=1)
    assert arrays(copy) == arrays(whole)


def test_every_byte_of_what_it_says_of_itself_is_sealed(copy):
    file = copy / "meta.json"
    raw = file.read_bytes()
    before = open_rendered(copy)
    for place in range(0, len(raw), 7):
        flip(file, place)
        # A flipped blank between two entries may change nothing.
        with contextlib.suppress(DemixError):
            found = open_rendered(copy)
            assert (found.order, found.names) == (before.order, before.names)
            assert found.categories == before.categories
        file.write_bytes(raw)


def spoil_cut(folder):
    (folder / "images.npy").write_bytes((folder / "images.npy").read_bytes()[:-1])


def spoil_missing(folder):
    (folder / "positives.npy").unlink()


def spoil_shape(folder):
    np.save(folder / "latents.npy", np.zeros((600, 4), dtype=np.float32))


def spoil_kind(folder):
    np.save(folder / "latents.npy", np.zeros((600, 5)))


def spoil_about(folder):
    (folder / "meta.json").write_text('{"rendered": 600}')


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_cut, "images.npy is truncated or damaged; render the folder anew"),
        (spoil_missing, "positives.npy is missing"),
        (spoil_shape, r"float32 of shape \(600, 5\) in .*, but found float32 of shape \(600, 4\)"),
        (spoil_kind, "but found float64"),
        (spoil_about, "meta.json is damaged"),
    ],
)
def test_spoilt_folders_are_refused(spoil, sentence, copy):
    spoil(copy)
    with pytest.raises(DemixError, match=sentence):
        open_rendered(copy)


def test_a_folder_without_an_image_yet_is_refused(copy):
    edit(copy, rendered=0)
    with pytest.raises(DemixError, match="none is rendered yet"):
        open_rendered(copy)


def test_images_with_known_factors_are_compared_with_their_checksums(whole, copy):
    assert len(open_factor_images(whole)) == 600
    with (copy / "images.npy").open("r+b") as file:
        file.seek(128)
        file.write(bytes(5000))
    with pytest.raises(DemixError, match="do not match their checksums"):
        open_factor_images(copy)
