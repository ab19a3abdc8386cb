"""Whatever was planted in a rendered folder, nothing outside it is written, and nothing waits."""

from __future__ import annotations

import io
import json
import os
import shutil

import numpy as np
import pytest

from alarm import within
from demix import DemixError
from demix.papers import Order, open_rendered, render_folder
from demix.papers.scenes.arrays import allocate, checksum, fill, sealed

ORDER = Order("sprites", n=300, size=8, seed=5)
SHARDS = 2


@pytest.fixture(autouse=True)
def in_time():
    """End a test that waits for a pipe."""
    with within(20):
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return render_folder(ORDER, tmp_path_factory.mktemp("scenes") / "whole", jobs=1)


@pytest.fixture
def out(whole, tmp_path):
    """A copy of it, of which the second shard is still to be rendered."""
    folder = shutil.copytree(whole, tmp_path / "out")
    edit(folder, lambda about: about["sha256"]["shards"].pop())
    return folder


@pytest.fixture
def thesis(tmp_path):
    file = tmp_path / "thesis.tex"
    file.write_bytes(b"precious")
    return file


def edit(folder, change) -> None:
    about = json.loads((folder / "meta.json").read_text())
    change(about)
    (folder / "meta.json").write_text(json.dumps(sealed(about)))


def render(folder):
    return render_folder(ORDER, folder, jobs=1)


@pytest.mark.parametrize("shape", [True, False])
@pytest.mark.parametrize(
    ("plant", "kind"), [("symlink_to", "link"), ("hardlink_to", "second name")]
)
def test_images_are_written_through_no_link(out, whole, thesis, plant, kind, shape):
    if shape:  # a file of somebody else's that looks as ours does
        thesis.write_bytes((whole / "images.npy").read_bytes()[:-1] + b"x")
    before = thesis.read_bytes()
    images = out / "images.npy"
    images.unlink()
    getattr(images, plant)(thesis)
    if not shape:
        edit(out, lambda about: about["sha256"]["shards"].clear())
    with pytest.raises(DemixError, match=rf"images\.npy to be free .*{kind}; remove it"):
        render(out)
    assert thesis.read_bytes() == before


def test_a_link_that_takes_the_place_of_images_meanwhile_is_not_written_through(out, whole, thesis):
    thesis.write_bytes((whole / "images.npy").read_bytes())
    before = thesis.read_bytes()
    (out / "images.npy").unlink()
    (out / "images.npy").symlink_to(thesis)
    with pytest.raises(DemixError, match="is a link"):
        fill(
            out / "images.npy", ORDER.shape, 0, np.ones((1, 8, 8, 3), dtype=np.uint8), os.stat(out)
        )
    with pytest.raises(DemixError, match="is a link"):
        allocate(out / "images.npy", ORDER.shape)
    assert thesis.read_bytes() == before


def test_an_array_that_takes_the_place_of_images_meanwhile_stays(out):
    np.save(out / "images.npy", np.ones((100, 3)))
    before = (out / "images.npy").read_bytes()
    with pytest.raises(DemixError, match=r"images\.npy holds something else"):
        fill(
            out / "images.npy", ORDER.shape, 0, np.ones((1, 8, 8, 3), dtype=np.uint8), os.stat(out)
        )
    assert (out / "images.npy").read_bytes() == before


def test_images_that_were_moved_and_linked_can_still_be_opened(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "out")
    elsewhere = (folder / "images.npy").rename(tmp_path / "images.npy")
    (folder / "images.npy").symlink_to(elsewhere)
    assert render(folder) == folder
    found = open_rendered(folder, verify=True)
    assert (found.images == open_rendered(whole).images).all()


@pytest.mark.parametrize("name", ["images.npy", "latents.npy", "meta.json"])
@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir])
def test_nothing_waits_for_a_pipe(out, name, plant):
    (out / name).unlink()
    plant(out / name)
    for verify in (False, True):
        with pytest.raises(DemixError, match=rf"{name}.*\.$"):
            open_rendered(out, verify=verify)
    with pytest.raises(DemixError, match=rf"{name}.*\.$"):
        render(out)


def test_latents_of_any_size_are_not_read_as_a_whole(whole, tmp_path):
    out = shutil.copytree(whole, tmp_path / "out")
    with (out / "latents.npy").open("ab") as file:
        file.truncate(2**42)
    with pytest.raises(DemixError, match=r"latents\.npy holds something else"):
        render(out)


@pytest.mark.parametrize("name", ["latents.npy", "meta.json"])
def test_what_is_written_anew_takes_no_place_of_a_link(out, thesis, name):
    thesis.write_bytes((out / name).read_bytes())
    before = thesis.read_bytes()
    (out / name).unlink()
    (out / name).symlink_to(thesis)
    with pytest.raises(DemixError, match=rf"{name} to be free .* a link"):
        render(out)
    assert thesis.read_bytes() == before
    assert (out / name).is_symlink()


@pytest.mark.parametrize("name", ["latents.npy", "images.npy"])
def test_files_of_others_beside_a_copied_description_stay(out, name):
    edit(out, lambda about: about["sha256"]["shards"].clear())
    (out / name).write_text("precious")
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        render(out)
    assert (out / name).read_text() == "precious"


@pytest.mark.parametrize("name", ["latents.npy", "images.npy"])
@pytest.mark.parametrize("forged", [True, False])
def test_arrays_of_others_that_look_as_ours_do_stay(whole, tmp_path, name, forged):
    out = shutil.copytree(whole, tmp_path / "out")
    if forged:
        edit(out, lambda about: about["sha256"]["shards"].clear())
    theirs = np.load(out / name) / 2 + 1
    np.save(out / name, theirs.astype(np.load(out / name).dtype))
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        render(out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


@pytest.mark.parametrize("name", ["latents.npy", "images.npy"])
def test_what_was_added_to_an_array_stays(whole, tmp_path, name):
    out = shutil.copytree(whole, tmp_path / "out")
    with (out / name).open("ab") as file:
        file.write(b"notes")
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        render(out)
    assert (out / name).read_bytes() == (whole / name).read_bytes() + b"notes"


def test_zeros_of_another_shape_stay(whole, tmp_path):
    out = shutil.copytree(whole, tmp_path / "out")
    np.save(out / "images.npy", np.zeros((3, 4)))
    with pytest.raises(DemixError, match=r"images\.npy holds something else"):
        render(out)


def test_images_that_nobody_noted_before_a_kill_are_our_own(whole, tmp_path):
    out = shutil.copytree(whole, tmp_path / "out")
    edit(out, lambda about: about["sha256"]["shards"].clear())
    with (out / "images.npy").open("r+b") as file:  # the first shard came last
        file.seek(128)
        file.write(bytes(256 * 8 * 8 * 3))
    render(out)
    assert (out / "images.npy").read_bytes() == (whole / "images.npy").read_bytes()


def test_the_start_of_an_image_that_a_kill_left_is_our_own(whole, tmp_path):
    out = shutil.copytree(whole, tmp_path / "out")
    edit(out, lambda about: about["sha256"]["shards"].clear())
    raw = (whole / "images.npy").read_bytes()
    # The first image of which something is lit, up to its first lit byte.
    lit = next(k for k in range(128, len(raw)) if raw[k]) + 1
    assert any(raw[lit : lit + 8])
    (out / "images.npy").write_bytes(raw[:lit] + bytes(len(raw) - lit))
    render(out)
    assert (out / "images.npy").read_bytes() == raw


def forge(folder, **facts) -> None:
    edit(folder, lambda about: about.update(facts))


def zipped(folder) -> None:
    raw = io.BytesIO()
    np.savez(raw, images=np.zeros(3))
    (folder / "images.npy").write_bytes(raw.getvalue())


def headless(folder) -> None:
    raw = bytearray((folder / "images.npy").read_bytes())
    raw[10:128] = b"{'descr': ('''" + b" " * 104
    (folder / "images.npy").write_bytes(raw)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "meta.json").write_text("[1]"),
        lambda folder: (folder / "meta.json").write_text("[" * 10**5),
        lambda folder: forge(folder, order={"scene": ["sprites"], "n": 300}),
        lambda folder: forge(folder, order={"scene": "sprites", "n": "300"}),
        lambda folder: forge(folder, order={"scene": "sprites", "n": 300, "size": None}),
        lambda folder: forge(folder, order=[1]),
        lambda folder: forge(folder, rendered=-1),
        lambda folder: forge(folder, rendered=301),
        lambda folder: forge(folder, rendered=1e999),
        lambda folder: forge(folder, rendered=[]),
        lambda folder: forge(folder, latents=None),
        lambda folder: forge(folder, categories=3),
        lambda folder: forge(folder, categories={"shape": 3}),
        lambda folder: forge(folder, categories={}),
        lambda folder: forge(folder, latents=["shape", "scale", "orientation", "x", "hue"]),
        lambda folder: forge(folder, latents=["shape", "scale", "orientation", "x", "x"]),
        lambda folder: forge(folder, latents=["shape", "scale", "orientation", "x", "\x1b"]),
        lambda folder: forge(folder, sha256=None),
        lambda folder: forge(folder, sha256={"latents": {"../../x": "0"}, "shards": []}),
        lambda folder: forge(folder, sha256={"latents": {}, "shards": ["0"] * (SHARDS + 1)}),
        zipped,
        headless,
    ],
)
def test_forged_folders_are_refused_in_a_sentence(whole, tmp_path, spoil):
    folder = shutil.copytree(whole, tmp_path / "out")
    spoil(folder)
    with pytest.raises(DemixError, match=r"(meta\.json|images\.npy) is .*damaged; .*\.$"):
        open_rendered(folder)


@pytest.mark.parametrize(
    "sums",
    [
        None,
        {"latents": {"../thesis.tex": "0"}, "shards": []},
        {"latents": {}, "shards": ["0"] * (SHARDS + 1)},
        {"latents": 3, "shards": []},
    ],
)
def test_forged_checksums_are_refused_before_anything_is_rendered(out, sums):
    forge(out, sha256=sums)
    before = (out / "meta.json").read_bytes()
    with pytest.raises(DemixError, match=r"meta\.json is damaged; render into a new folder\."):
        render(out)
    assert (out / "meta.json").read_bytes() == before


def test_latents_that_no_scene_shows_are_refused(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "out")
    latents = np.load(folder / "latents.npy")
    latents[0, 0] = 7
    np.save(folder / "latents.npy", latents)
    digest = checksum((folder / "latents.npy").read_bytes())
    edit(folder, lambda about: about["sha256"]["latents"].update({"latents.npy": digest}))
    with pytest.raises(DemixError, match="must be 0 to 2 for square, ellipse, heart"):
        open_rendered(folder, verify=True)


def test_latents_without_a_checksum_are_refused(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "out")
    edit(folder, lambda about: about["sha256"]["latents"].clear())
    with pytest.raises(DemixError, match="do not match their checksums"):
        open_rendered(folder, verify=True)


def test_an_array_of_the_same_kind_that_is_moved_there_meanwhile_stays(tmp_path):
    theirs = np.ones(ORDER.shape, dtype=np.uint8)
    np.save(tmp_path / "theirs.npy", theirs)

    def meanwhile(done: int) -> None:
        if not done:
            (tmp_path / "theirs.npy").replace(tmp_path / "out" / "images.npy")

    with pytest.raises(DemixError, match=r"images\.npy holds something else"):
        render_folder(ORDER, tmp_path / "out", jobs=1, callback=meanwhile)
    assert (np.load(tmp_path / "out" / "images.npy") == theirs).all()
