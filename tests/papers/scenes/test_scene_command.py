"""`demix render`: killed, out of room, and refusing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from demix import DemixWarning
from demix.papers import open_rendered

COMMAND = ["render", "sprites", "--n", 2048, "--size", 16, "--seed", 1]


def rendered(folder: Path) -> int:
    try:
        return json.loads((folder / "meta.json").read_text())["rendered"]
    except FileNotFoundError:
        return 0


def wait_until(moment) -> None:
    stop = time.monotonic() + 300
    while not moment():
        assert time.monotonic() < stop
        time.sleep(0.002)


def test_killed_it_goes_on_to_the_same_bytes(demix, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    done = demix.run(*COMMAND, "--jobs", 1, "--out", whole)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"Wrote 2048 images of 16 x 16 to {whole} (images.npy)"
    process = demix.start(*COMMAND, "--jobs", 2, "--out", cut)
    wait_until(lambda: rendered(cut) >= 256)
    helpers = Path(f"/proc/{process}/task/{process}/children")
    helpers = [*map(int, helpers.read_text().split())] if helpers.exists() else []
    os.kill(process, signal.SIGKILL)
    assert demix.wait().returncode == -signal.SIGKILL
    before = rendered(cut)
    assert 256 <= before < 2048
    # What it had started ends with it, and does not write on.
    wait_until(lambda: not any(Path(f"/proc/{helper}").exists() for helper in helpers))
    with pytest.warns(DemixWarning, match=f"{before} of 2048"):
        part = open_rendered(cut).images
    assert (part == np.load(whole / "images.npy")[:before]).all()
    assert demix.run(*COMMAND, "--out", cut).returncode == 0
    for name in ("images.npy", "latents.npy"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 6 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command to make a small disk with")
    if done.returncode:
        pytest.skip("only root may mount the small disk that this test fills")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_keeps_what_was_rendered(demix, small_disk):
    out, ballast = small_disk / "out", small_disk / "ballast"
    # Fits at first; then something else takes the room.
    process = demix.start(*COMMAND, "--jobs", 1, "--out", out)
    assert process
    wait_until(lambda: rendered(out) >= 256)
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    done = demix.wait()
    assert done.returncode == 2, done
    told = done.stderr.strip().splitlines()[-1]
    count = rendered(out)
    assert f"Error: The disk of {out} is full: the remaining images need " in told
    assert f"the {count} images rendered so far can be used" in told
    with pytest.warns(DemixWarning, match=f"{count} of 2048"):
        assert open_rendered(out).images[:count].max() == 255
    ballast.unlink()
    assert demix.run(*COMMAND, "--jobs", 1, "--out", out).returncode == 0
    assert len(open_rendered(out).images) == 2048


def test_too_small_a_disk_is_seen_before(demix, small_disk):
    told = demix.refusal("render", "sprites", "--n", 20000, "--out", small_disk / "out")
    assert "Rendering needs 250 MB on the disk of" in told
    assert "but 6.29 MB are free; choose another folder" in told
    assert not (small_disk / "out").exists()


def test_a_preview_has_a_row_for_each_latent(demix, tmp_path):
    file = tmp_path / "sheet.png"
    done = demix.run("render", "sprites", "--preview", file)
    assert done.stdout.strip() == f"Wrote {file}"
    sheet = np.asarray(Image.open(file))
    assert sheet.shape[0] == 5 * 100 + 4
    rows = sheet[2:502].reshape(5, 100, *sheet.shape[1:])
    assert (rows == 255).any(axis=(1, 2, 3)).all()
    assert (rows == 0).any(axis=(1, 2, 3)).all()


def test_a_preview_may_lie_among_its_images(demix, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    command = ["render", "sprites", "--n", 2, "--preview", out / "p.png", "--out", out]
    for more in ([], ["--overwrite"]):
        done = demix.run(*command, *more)
        assert done.returncode == 0, done.stderr
    names = ["images.npy", "latents.npy", "meta.json", "p.png"]
    assert sorted(file.name for file in out.iterdir()) == names


def test_where_images_are_refused_there_is_no_preview(demix, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    command = ["render", "sprites", "--n", 2, "--preview", tmp_path / "p.png"]
    assert "holds something else" in demix.refusal(*command, "--out", tmp_path / "out")
    assert not (tmp_path / "p.png").exists()
    assert "Replace an earlier --preview" in demix.run("render", "--help").stdout


def test_a_preview_replaces_previews_only(demix, tmp_path):
    photo, sheet = tmp_path / "photo.png", tmp_path / "sheet.png"
    Image.new("RGB", (8, 8), "red").save(photo)
    before = photo.read_bytes()
    told = demix.refusal("render", "sprites", "--preview", photo, "--overwrite")
    assert f"{photo} holds something else" in told
    assert photo.read_bytes() == before
    for _ in range(2):
        done = demix.run("render", "sprites", "--preview", sheet, "--overwrite")
        assert done.returncode == 0, done.stderr


def test_refusals_are_one_sentence(demix, tmp_path):
    out = ["--out", tmp_path / "out"]
    assert "give --out DIR, --preview FILE.png, or both" in demix.refusal("render", "3dident")
    assert "--preview must name a new .png file" in demix.refusal(
        "render", "3dident", "--preview", tmp_path / "sheet.gif"
    )
    assert "Unknown scene 'moon'" in demix.refusal("render", "moon", *out)
    assert "but got 'beta:1'" in demix.refusal("render", "sprites", "--pairs", "beta:1", *out)
    assert "at least 1, but got 0" in demix.refusal("render", "sprites", "--jobs", 0, *out)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("pause", [0.02, 0.05])
def test_a_second_interrupt_does_not_keep_it_waiting(demix, tmp_path, pause):
    """As the first one ends the processes that render, the second one must not."""
    command = ["render", "sprites", "--n", 20000, "--size", 32, "--jobs", 2]
    process = demix.start(*command, "--out", tmp_path / "out")
    demix.send(signal.SIGINT, lambda: rendered(tmp_path / "out") > 0)
    time.sleep(pause)
    with suppress(ProcessLookupError):  # it may have ended already
        os.kill(process, signal.SIGINT)
    done = demix.wait()
    assert done.returncode == 130
    assert "Interrupted" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--n", "--jobs"])
def test_a_number_that_no_float_holds_is_refused_in_a_sentence(demix, option, tmp_path):
    told = demix.refusal("render", "sprites", option, "9" * 400, "--out", tmp_path / "out")
    assert "The number of images must be" in told or "of memory, but" in told
