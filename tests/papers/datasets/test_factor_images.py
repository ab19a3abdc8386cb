"""Every format gives the same: bytes by row, factors by name, in the order of the file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from demix import DemixError, DemixWarning
from demix.papers import Order, open_factor_images, render_folder
from demix.papers.datasets.factor_images import ArrayPixels, BitPixels, H5Pixels

sys.path.insert(0, str(Path(__file__).resolve().parent))

import official

pytest.importorskip("h5py", reason="the extra `papers` is not installed")


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> dict:
    """One of each, and the images that were written."""
    here = tmp_path_factory.mktemp("dislib")
    found = {}
    for name, compressed in (("dsprites", True), ("dsprites stored", False)):
        path = here / f"{compressed}-{official.DSPRITES}"
        arrays = official.write_dsprites(path, compressed=compressed)
        found[name] = open_factor_images(path), 255 * arrays["imgs"][..., None]
    arrays = official.write_shapes3d(here / "3dshapes.h5")
    found["shapes3d"] = open_factor_images(here / "3dshapes.h5"), arrays["images"]
    images = official.write_mpi3d(here / "mpi3d_real.npz", compressed=True)
    found["mpi3d_real"] = open_factor_images(here / "mpi3d_real.npz"), images
    images = official.write_mpi3d(here / "mpi3d_toy.npz")
    found["mpi3d_toy"] = open_factor_images(here / "mpi3d_toy.npz"), images
    cars = official.write_cars(here / "data" / "cars")
    halved = np.concatenate([_halved(cars[name]) for name in sorted(cars)])
    found["cars3d"] = open_factor_images(here / "data" / "cars"), halved
    tar = official.as_tar(here / "data" / "cars", here / "nips2015-analogy-data.tar.gz")
    found["cars3d tar"] = open_factor_images(tar), halved
    for name, packed in (("smallnorb", False), ("smallnorb gz", True)):
        parts = official.write_norb(here / name, packed=packed)
        left = np.concatenate([part["dat"][:, 0] for part in parts])[..., None]
        found[name] = open_factor_images(here / name), left
    images = official.write_coil(here / "coil.npz")
    found["coil100"] = open_factor_images(here / "coil.npz"), np.stack(images)
    folder = render_folder(Order("sprites", n=30, size=16), here / "sprites", jobs=1)
    found["sprites"] = open_factor_images(folder), np.load(folder / "images.npy")
    return found


def _halved(views: np.ndarray) -> np.ndarray:
    """Car views of 24 azimuths and 4 elevations, each pixel the mean of four."""
    images = np.moveaxis(views, (3, 4), (0, 1)).reshape(96, *views.shape[:3]).astype(float)
    four = [images[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    return np.floor(np.mean(four, axis=0) + 0.5).astype(np.uint8)


NAMES = (
    "dsprites", "dsprites stored", "shapes3d", "mpi3d_real", "mpi3d_toy", "cars3d", "cars3d tar",
    "smallnorb", "smallnorb gz", "coil100", "sprites",
)  # fmt: skip
every_set = pytest.mark.parametrize("name", NAMES)


@every_set
def test_rows_come_as_bytes_in_the_order_asked_for(opened, name):
    known, images = opened[name]
    assert known.name == name.split()[0]
    assert len(known) == len(images)
    assert known.shape == (images.shape[3], *images.shape[1:3])
    rows = np.random.default_rng(1).integers(len(known), size=25)
    for asked in (rows, rows[:0], [len(known) - 1, 0, 0]):
        read = known.read(asked)
        assert read.dtype == np.uint8
        assert np.array_equal(read, images[np.asarray(asked, dtype=int)])


@every_set
def test_some_rows_are_the_same_rows(opened, name):
    known, images = opened[name]
    rows = np.random.default_rng(2).permutation(len(known))[:20]
    told = []
    some = known.only(rows, callback=lambda done, total, what: told.append((done, total)))
    assert np.array_equal(some.read(np.arange(20)), images[rows])
    assert np.array_equal(some.values, known.values[rows])
    assert told[-1] == (20, 20)


@every_set
def test_every_factor_is_declared_and_varies_as_its_kind_says(opened, name):
    known, _ = opened[name]
    for column in known.columns:
        values = known.factor(column.name)
        assert values.shape == (len(known),)
        assert known.column(column.name) == column
        if column.kind in ("categorical", "ordinal"):
            assert np.array_equal(values, np.round(values))
            assert values.min() >= 0
            assert not column.levels or values.max() < len(column.levels)
        if column.kind == "periodic":
            assert np.ptp(values) <= column.period
        assert column.within is None or known.column(column.within).kind == "categorical"
    with pytest.raises(DemixError, match=f"factors of {known.name} are .*, but 'taste'"):
        known.factor("taste")


def test_what_can_stay_in_its_file_stays_there(opened):
    kinds = {name: type(opened[name][0].pixels) for name in NAMES}
    assert kinds["dsprites"] is BitPixels
    assert kinds["shapes3d"] is H5Pixels
    for name, mapped in (("dsprites stored", True), ("mpi3d_toy", True), ("mpi3d_real", False),
                         ("sprites", True), ("coil100", False)):  # fmt: skip
        assert kinds[name] is ArrayPixels
        assert (type(opened[name][0].pixels._rows).__name__ == "FileRows") == mapped


def test_mpi3d_counts_through_its_factors_the_last_one_fastest(opened):
    known, _ = opened["mpi3d_toy"]
    sizes = (4, 4, 2, 3, 3, 40, 40)
    rows = np.array([0, 1, 40, 1600, 460_799, 123_456])
    expected = np.stack(np.unravel_index(rows, sizes), axis=1)
    assert np.array_equal(known.values[rows], expected)
    assert known.column("object_shape").levels == ()  # of which four is not said


def test_all_of_mpi3d_has_six_shapes(tmp_path):
    official.write_mpi3d(tmp_path / "mpi3d_realistic.npz", (6, 6, 2, 3, 3, 40, 40))
    known = open_factor_images(tmp_path / "mpi3d_realistic.npz")
    assert len(known) == 1_036_800
    assert known.column("object_shape").levels[5] == "sphere"
    assert known.factor("object_shape").max() == 5


def test_cars_are_numbered_by_name_and_none_is_lost(opened):
    known, _ = opened["cars3d"]
    assert known.column("object_type").levels == ("car_001_mesh", "car_002_mesh", "car_010_mesh")
    assert np.array_equal(known.factor("object_type"), np.repeat([0, 1, 2], 96))
    assert known.factor("elevation")[:5].tolist() == [0, 1, 2, 3, 0]
    assert known.factor("azimuth")[:9].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]


def test_smallnorb_has_the_factors_of_both_parts(opened, tmp_path):
    known, _ = opened["smallnorb"]
    parts = official.write_norb(tmp_path)
    assert np.array_equal(known.factor("category"), np.concatenate([p["cat"] for p in parts]))
    azimuths = np.concatenate([p["info"][:, 2] for p in parts])
    assert np.array_equal(known.factor("azimuth"), azimuths)
    for file in tmp_path.glob("*testing*"):
        file.unlink()
    assert len(open_factor_images(tmp_path)) == 40


def test_scenes_without_a_category_get_one_of_colour(tmp_path):
    pytest.importorskip("embreex", reason="the extra `papers` is not installed")
    known = open_factor_images(
        render_folder(Order("3dident", n=24, size=16), tmp_path / "s", jobs=1)
    )
    assert known.columns[-1].name == "object colour"
    edges = np.floor((known.factor("object hue") + 1) * 4)
    assert np.array_equal(known.factor("object colour"), edges)


def test_a_few_damaged_photographs_are_left_out_and_counted(tmp_path):
    images = official.write_coil(tmp_path / "coil.npz", bad=(17,))
    with pytest.warns(
        DemixWarning, match="1 of the 144 images in .* the first of them is number 17"
    ):
        known = open_factor_images(tmp_path / "coil.npz")
    assert len(known) == 143
    assert np.array_equal(known.read([17])[0], images[18])
    official.write_coil(tmp_path / "coil.npz", bad=(17, 18))
    with pytest.raises(DemixError, match=r"2 of the 144 .* cannot, the first of them number 17"):
        open_factor_images(tmp_path / "coil.npz")
