"""Rows of a file are those of its array, in any layout, and a file that changes is refused."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demix import DemixError, read_data
from demix.data.data import as_data
from demix.data.rows import FileRows, array_rows

VIEWS = {
    "all": lambda x: x,
    "rows": lambda x: x[7:1900],
    "every third": lambda x: x[1::3],
    "columns backwards": lambda x: x[5:, ::-2],
    "turned": lambda x: x.T,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of the same numbers, by rows and by columns; in one a row is scattered."""
    folder = tmp_path_factory.mktemp("files")
    x = np.random.default_rng(0).normal(size=(9000, 9))
    for order in "CF":
        np.save(folder / f"{order}.npy", np.asarray(x, order=order))
    return folder


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name", VIEWS)
def test_any_view_of_a_map_is_read_as_numpy_reads_it(name, order, files):
    view = VIEWS[name](np.load(files / f"{order}.npy", mmap_mode="r"))
    rows = array_rows(view)
    assert isinstance(rows, FileRows) == (view.flags.c_contiguous or view.flags.f_contiguous)
    last = len(view)
    for start, stop in ((0, last), (1, 3), (last - 1, last), (2, 2)):
        np.testing.assert_array_equal(rows[start:stop], view[start:stop])
    random = np.random.default_rng(1)
    for size in (0, 1, 5, 300):
        index = random.integers(last, size=size)
        np.testing.assert_array_equal(rows[index], view[index])


@given(data=st.data())
def test_shapes_and_types_of_all_kinds_are_read(data, tmp_path_factory):
    shape = data.draw(st.tuples(st.integers(1, 40), *[st.integers(1, 4)] * 3))
    kind = data.draw(st.sampled_from(["u1", "<f4", ">f4", "<f8", ">i8", "?"]))
    order = data.draw(st.sampled_from("CF"))
    x = np.random.default_rng(0).integers(0, 2, size=shape).astype(kind)
    path = tmp_path_factory.mktemp("npy") / "x.npy"
    np.save(path, np.asarray(x, order=order))
    rows = array_rows(np.load(path, mmap_mode="r"))
    np.testing.assert_array_equal(rows[:], x)
    assert rows.dtype == x.dtype
    index = np.array(data.draw(st.lists(st.integers(0, len(x) - 1), max_size=9)), dtype=np.int64)
    np.testing.assert_array_equal(rows[index], x[index])


def test_what_a_user_wrote_to_a_map_of_his_own_is_read(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((10, 2)))
    own = np.load(tmp_path / "x.npy", mmap_mode="c")
    own[3] = 7
    assert float(as_data(own).take(torch_index(3))[0, 0]) == 7


def test_a_map_whose_file_is_gone_is_read_as_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(20.0).reshape(10, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    (tmp_path / "x.npy").unlink()
    assert as_data(mapped).take(torch_index(9)).tolist() == [[18, 19]]


def torch_index(*rows: int):
    import torch

    return torch.tensor(rows)


@pytest.mark.parametrize("change", ["cut", "written", "grown"])
def test_a_file_that_changes_is_refused(change, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5000, 3)))
    data = read_data(tmp_path / "x.npy")
    data.check_unchanged()
    time.sleep(0.02)  # clocks of file systems tick slowly
    with (tmp_path / "x.npy").open("r+b") as file:
        if change == "cut":
            file.truncate(2000)
        elif change == "written":
            file.seek(4000)
            file.write(b"12345678")
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"more")
    with pytest.raises(DemixError, match=r"x\.npy was changed while it was read; wait"):
        data.take(torch_index(4000))
    with pytest.raises(DemixError, match="was changed"):
        data.check_unchanged()


FIT = """
import sys, warnings
from demix import ContrastiveDemixer, Recipe, read_data
warnings.simplefilter("ignore")
def report(step, steps, record):
    print(step, flush=True)
ContrastiveDemixer(2, recipe=Recipe(steps=100_000)).fit(read_data(sys.argv[1]), callback=report)
"""


@pytest.mark.slow
def test_a_file_cut_short_during_a_fit_ends_it_with_a_sentence(demix, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 4)))
    demix.start_python(FIT, path)
    demix.send(0, lambda: bool(demix.said()))  # which waits for the first step, and does nothing
    os.truncate(path, 4096)
    done = demix.wait()
    assert done.stdout.startswith("1\n")
    assert done.returncode == 1  # and not killed by SIGBUS
    assert "x.npy was changed while it was read" in done.stderr


def test_rows_in_a_store_that_changes_are_refused(tmp_path):
    import zarr

    store = zarr.create_array(tmp_path / "x.zarr", data=np.eye(6), chunks=(2, 6))
    data = read_data(tmp_path / "x.zarr")
    data.check_unchanged()
    time.sleep(0.02)
    store[0, 0] = 5.0
    with pytest.raises(DemixError, match=r"x\.zarr was changed while it was read"):
        data.check_unchanged()


def test_images_that_change_are_refused(tmp_path):
    from PIL import Image

    for name in "ab":
        Image.new("L", (4, 4)).save(tmp_path / f"{name}.png")
    data = read_data(tmp_path)
    data.check_unchanged()
    time.sleep(0.02)
    Image.new("L", (4, 4), 9).save(tmp_path / "b.png")
    with pytest.raises(DemixError, match=r"was changed while it was read"):
        data.check_unchanged()
