"""Images come from folders and archives alike, and a few damaged ones are left out."""

from __future__ import annotations

import tarfile
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from demix import DemixError
from demix.papers import open_images
from pictures import picture, write_tar

SHADES = {f"{i}.JPEG": (40 * i, 255 - 40 * i, 100) for i in range(5)}
FILES = {name: picture(shade) for name, shade in SHADES.items()}


def read(path, **settings):
    """All names and pixels of a path."""
    batches = list(open_images(path, **settings).batches(2))
    assert all(len(batch.names) == len(batch.pixels) <= 2 for batch in batches)
    names = [name for batch in batches for name in batch.names]
    return names, np.concatenate([batch.pixels for batch in batches])


def test_a_folder_and_archives_of_any_kind_give_the_same(tmp_path):
    folder = tmp_path / "images" / "val"
    folder.mkdir(parents=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / ".DS_Store.jpg").write_bytes(b"left by another system")
    (folder / "readme.txt").write_text("not an image")
    names, pixels = read(tmp_path / "images", side=14)
    assert names == list(SHADES)
    assert pixels.shape == (5, 14, 14, 3)
    assert np.abs(pixels.mean(axis=(1, 2)) - np.array(list(SHADES.values()))).max() < 4
    inside = {f"val/{name}": data for name, data in FILES.items()} | {"val/._0.JPEG": b"no"}
    for mode in ("w", "w:gz", "w:xz"):
        again = read(write_tar(tmp_path / "images.tar", inside, mode), side=14)
        assert again[0] == names
        assert np.array_equal(again[1], pixels)


def test_images_of_the_right_size_stay_as_they_are_and_others_lose_their_rims(tmp_path):
    exact = np.random.default_rng(0).integers(256, size=(16, 16, 3), dtype=np.uint8)
    Image.fromarray(exact).save(tmp_path / "exact.png")
    wide = np.zeros((32, 64, 3), dtype=np.uint8)
    wide[:, 16:48] = 200
    Image.fromarray(wide).save(tmp_path / "wide.png")
    Image.fromarray(wide[:, :, 0]).save(tmp_path / "wide_grey.png")
    names, pixels = read(tmp_path, side=16)
    assert names == ["exact.png", "wide.png", "wide_grey.png"]
    assert np.array_equal(pixels[0], exact)
    assert pixels[1].min() > 190  # the middle of the middle
    assert np.array_equal(pixels[1], pixels[2])


def test_some_of_many_are_spread_over_all(tmp_path):
    images = open_images(write_tar(tmp_path / "i.tar", FILES), side=8)
    some = images.some(3)
    assert some.names == ("0.JPEG", "2.JPEG", "4.JPEG")
    assert [name for batch in some.batches(9) for name in batch.names] == list(some.names)
    assert images.some(99).names == images.names


def test_one_damaged_file_in_a_hundred_is_left_out_and_more_are_refused(tmp_path):
    good = {f"{i:03d}.JPEG": FILES["1.JPEG"] for i in range(199)}
    cut = FILES["2.JPEG"][: len(FILES["2.JPEG"]) // 2]
    path = write_tar(tmp_path / "i.tar", good | {"200.JPEG": cut})
    names, _ = read(path, side=8)
    assert names == list(good)
    worse = {"000.JPEG": b"", "001.JPEG": b"no image", "002.JPEG": cut}
    with pytest.raises(DemixError, match=r"3 of 200 in .*i\.tar cannot.*002\.JPEG"):
        read(write_tar(path, good | {"200.JPEG": FILES["1.JPEG"]} | worse), side=8)


def test_what_holds_no_images_is_refused(tmp_path):
    def refusal(path):
        with pytest.raises(DemixError) as caught:
            open_images(path)
        return str(caught.value)

    assert f"{tmp_path / 'gone'} is not there" in refusal(tmp_path / "gone")
    assert "there are none" in refusal(tmp_path)
    path = write_tar(tmp_path / "i.tar", {"a/1.jpg": FILES["1.JPEG"], "b/1.jpg": FILES["2.JPEG"]})
    assert "has 1.jpg as a/1.jpg and as b/1.jpg" in refusal(path)
    whole = write_tar(path, FILES, "w:gz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert f"{path} cannot be read as one" in refusal(path)
    path.write_bytes(b"not an archive")
    assert f"{path} cannot be read as one" in refusal(path)
    with pytest.raises(DemixError, match="at least 1 pixel"):
        open_images(path, side=0)


def test_members_without_content_take_no_memory(tmp_path):
    path = tmp_path / "i.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number in range(5_000):
            archive.addfile(tarfile.TarInfo(f"{number}"))
            archive.members.clear()
        archive.addfile(tarfile.TarInfo("1.png"))
    tracemalloc.start()
    try:
        assert open_images(path).names == ("1.png",)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_a_file_of_mere_zeros_takes_little_memory(tmp_path):
    path, folder = tmp_path / "i.tar.gz", tmp_path / "images"
    folder.mkdir()
    with (folder / "a.png").open("wb") as file:
        file.truncate(3 * 2**26)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(folder / "a.png", "a.png")
    tracemalloc.start()
    try:
        assert open_images(path).digest() == open_images(folder).digest()
        assert tracemalloc.get_traced_memory()[1] < 2**23
        with pytest.raises(DemixError, match="can be decoded, but 1 of 1"):
            next(open_images(path).batches(1))
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**26
    finally:
        tracemalloc.stop()


def test_folders_deep_in_each_other_are_no_trouble(abyss):
    (abyss / "d" / "0.JPEG").write_bytes(FILES["0.JPEG"])
    assert read(abyss)[0] == ["0.JPEG"]
