"""Rows are the same numbers wherever they are kept, and arrays of any library become rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import zarr
from PIL import Image

from demix import Data, DemixError, read_data
from demix.data.data import as_data

MATRIX = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
PIXELS = np.random.default_rng(1).integers(0, 256, size=(20, 3, 6, 4), dtype=np.uint8)


def npy(folder, array):
    np.save(folder / "x.npy", array)
    return read_data(folder / "x.npy")


def stored_zarr(folder, array):
    stored = zarr.create_array(
        folder / "x.zarr", shape=array.shape, chunks=(7, *array.shape[1:]), dtype=array.dtype
    )
    stored[:] = array
    return read_data(folder / "x.zarr")


def images(folder, array):
    for row, pixels in enumerate(array):
        Image.fromarray(pixels.transpose(1, 2, 0)).save(folder / f"{row:03}.png")
    return read_data(folder)


KEPT = {
    "array": (MATRIX, lambda folder, x: as_data(x), MATRIX),
    "column-major array": (MATRIX, lambda folder, x: as_data(np.asfortranarray(x)), MATRIX),
    "big-endian array": (MATRIX, lambda folder, x: as_data(x.astype(">f8")), MATRIX),
    "tensor": (MATRIX, lambda folder, x: as_data(torch.tensor(x, requires_grad=True)), MATRIX),
    "frame": (MATRIX, lambda folder, x: as_data(pd.DataFrame(x)), MATRIX),
    "list": (MATRIX, lambda folder, x: as_data(x.tolist()), MATRIX),
    "npy": (MATRIX, npy, MATRIX),
    "column-major npy": (MATRIX, lambda folder, x: npy(folder, np.asfortranarray(x)), MATRIX),
    "float64 npy": (MATRIX, lambda folder, x: npy(folder, x.astype(np.float64)), MATRIX),
    "zarr": (MATRIX, stored_zarr, MATRIX),
    "images in npy": (PIXELS, npy, PIXELS.astype(np.float32)),
    "column-major images in npy": (
        PIXELS,
        lambda folder, x: npy(folder, np.asfortranarray(x)),
        PIXELS.astype(np.float32),
    ),
    "images in zarr": (PIXELS, stored_zarr, PIXELS.astype(np.float32)),
    "folder of images": (PIXELS, images, PIXELS.astype(np.float32) / 255),
}


@pytest.fixture(params=KEPT)
def kept(request, tmp_path):
    """Data, and the numbers that they must give."""
    array, keep, expected = KEPT[request.param]
    return keep(tmp_path, array), torch.from_numpy(expected)


def test_rows_come_in_the_order_that_was_asked_for(kept):
    data, expected = kept
    assert (data.shape, len(data)) == (tuple(expected.shape), len(expected))
    index = torch.randint(len(data), (500,), generator=torch.Generator().manual_seed(0))
    for asked in (index, index[:1], index[:0], torch.arange(len(data))):
        taken = data.take(asked)
        assert taken.dtype == torch.float32
        assert taken.is_contiguous()
        assert torch.equal(taken, expected[asked])


@pytest.mark.parametrize("size", [1, 7, 1000, None])
def test_blocks_are_all_rows_in_order(kept, size):
    data, expected = kept
    starts, blocks = zip(*data.blocks(size), strict=True)
    assert list(starts) == list(np.cumsum([0, *map(len, blocks[:-1])]))
    assert torch.equal(torch.cat(blocks), expected)
    assert all(len(block) == size for block in blocks[:-1])


def test_what_is_taken_can_be_changed_without_changing_the_data(kept):
    data, expected = kept
    before = expected.clone()
    data.take(torch.tensor([0, 1])).zero_()
    for _, block in data.blocks(8):
        block.zero_()
    assert torch.equal(data.take(torch.arange(len(data))), before)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ([0, 1], "int64 tensor"),
        (torch.tensor([0.0]), "but got torch.float32 of shape (1,)"),
        (torch.tensor([[0]]), "of shape (1, 1)"),
        (torch.tensor([0, 300]), "numbered 0..299, but 0..300"),
        (torch.tensor([-1]), "numbered 0..299, but -1..-1"),
    ],
)
def test_rows_that_are_not_there_are_refused(index, words):
    with pytest.raises(DemixError) as told:
        as_data(MATRIX).take(index)
    assert words in str(told.value)


def test_a_block_has_rows():
    with pytest.raises(DemixError, match="at least 1 row, but size is 0"):
        next(as_data(MATRIX).blocks(0))


def test_the_digest_is_that_of_the_numbers_not_of_their_place(tmp_path):
    digest = as_data(MATRIX).digest()
    assert len(digest) == 64
    assert npy(tmp_path, MATRIX).digest() == digest
    assert npy(tmp_path, np.asfortranarray(MATRIX)).digest() == digest
    assert stored_zarr(tmp_path, MATRIX).digest() == digest
    assert as_data(MATRIX.astype(np.float64)).digest() == digest
    changed = MATRIX.copy()
    changed[-1, -1] += 1
    others = [changed, MATRIX + np.float64(1e-9), MATRIX.reshape(150, 10), MATRIX[::-1]]
    assert len({digest, *(as_data(other).digest() for other in others)}) == 5


def test_memory_maps_of_any_kind_are_rows_and_stay_as_the_user_wrote_them(tmp_path):
    np.save(tmp_path / "x.npy", MATRIX)
    for mode in ("r", "r+", "c"):
        mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
        expected = MATRIX.copy()
        if mode != "r":
            mapped[3] = expected[3] = 7
        data = as_data(mapped[2:][::2])
        assert torch.equal(data.take(torch.arange(149)), torch.from_numpy(expected[2:][::2]))
        # Written again after a page was let go, or kept from being so.
        assert np.array_equal(mapped, expected)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int64, np.bool_, np.float16, np.float64, np.longdouble]
)
def test_any_real_type_becomes_float32(dtype):
    data = as_data(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert data.take(torch.tensor([1])).tolist() == [[1.0, 0.0]]
    assert data.take(torch.tensor([1])).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half, torch.int32, torch.bool])
def test_any_real_tensor_becomes_float32(dtype):
    assert as_data(torch.eye(2).to(dtype)).take(torch.tensor([1])).tolist() == [[0.0, 1.0]]


def test_frames_keep_the_names_of_their_columns():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], 3: [0.5, None]})
    frame["nullable"] = pd.array([1, None], dtype="Int64")
    data = as_data(frame)
    assert data.names == ("a", "b", "3", "nullable")
    np.testing.assert_array_equal(
        data.take(torch.tensor([0, 1])), [[1, 1, 0.5, 1], [2, 0, np.nan, np.nan]]
    )
    assert as_data(frame["a"]).names == ("a",)
    assert as_data(frame["a"]).shape == (2, 1)


def test_data_stay_what_they_are(tmp_path):
    data = as_data(MATRIX)
    assert isinstance(data, Data)
    assert as_data(data) is data
    stored_zarr(tmp_path, MATRIX)
    opened = as_data(zarr.open_array(tmp_path / "x.zarr", mode="r"))
    assert opened.digest() == data.digest()


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros(3), "reshape a single dimension with [:, None]"),
        (torch.zeros(3), "the tensor has shape (3,)"),
        ([1.0, 2.0], "the list has shape (2,)"),
        (np.zeros((0, 3)), "at least one row and column, but the array has (0, 3)"),
        (np.zeros((3, 2), dtype=complex), "complex128; take real and imaginary part"),
        (torch.zeros(3, 2, dtype=torch.complex64), "is of type complex64"),
        (np.array([[{}]]), "the array is of type object"),
        (np.zeros((2, 2), dtype="M8[s]"), "datetime64[s]; subtract a first date"),
        (np.array([["a"]]), "is of type <U1"),
        ([[1, 2], [3]], "rows of equally many numbers"),
        ("x.npy", "but got str; files are read with read_data"),
        (None, "but got NoneType"),
        (torch.eye(2).to_sparse(), "with .to_dense()"),
        (np.ma.masked_less(np.eye(2), 0.5), "2 of their entries are masked"),
        (pd.DataFrame({"a": [1], "b": ["x"]}), "column 'b' of the DataFrame is of type str"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), "column 'when'"),
        (pd.DataFrame({"a": []}), "at least one row and column"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_is_no_table_of_numbers_is_refused(x, words):
    with pytest.raises(DemixError) as told:
        as_data(x)
    assert words in str(told.value)
    assert str(told.value).endswith(".")


@pytest.mark.parametrize("index", [[2, 3, 4, 5], [5, 0, 3], [7, 7, 1]], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_some_rows_are_data_of_their_own(index, dtype):
    x = np.arange(24).reshape(8, 3).astype(dtype)
    rows = torch.tensor(index)
    some = as_data(x).only(rows)
    assert some.shape == (len(index), 3)
    assert np.array_equal(some.take(torch.arange(len(index))).numpy(), x[index])
    assert np.array_equal(np.concatenate([b.numpy() for _, b in some.blocks(2)]), x[index])
    assert np.array_equal(some.only(torch.tensor([1, 0])).take(torch.arange(2)), x[index][[1, 0]])


def test_rows_side_by_side_have_the_digest_of_their_own_array():
    x = np.random.default_rng(0).normal(size=(9, 2))
    assert as_data(x).only(torch.arange(2, 7)).digest() == as_data(x[2:7]).digest()
    with pytest.raises(DemixError, match=r"numbered 0\.\.8"):
        as_data(x).only(torch.tensor([9]))
