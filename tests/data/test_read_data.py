"""Files as the official libraries write them are read; anything else is told in one sentence."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import torch
import zarr
from PIL import Image
from sentences import everything, refusal

from demix import DemixError, read_data

MATRIX = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
FRAME = pd.DataFrame(MATRIX, columns=["a", "b b", "ü"])


def refused(*arguments, **options) -> str:
    sentence = refusal(read_data, *arguments, **options)
    assert sentence.startswith(("Expected", "A key", "Columns", "Reading"))
    return sentence


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_frames_written_as_csv_come_back(tmp_path, delimiter, encoding, end):
    path = tmp_path / "x.csv"
    FRAME.to_csv(path, index=False, sep=delimiter, encoding=encoding, lineterminator=end)
    data = read_data(path)
    assert data.names == tuple(FRAME.columns)
    assert data.source == str(path)
    np.testing.assert_array_equal(everything(data), MATRIX)


def test_a_csv_file_may_have_no_header_or_one_of_numbers_or_one_of_numpy(tmp_path):
    path = tmp_path / "x.csv"
    FRAME.to_csv(path, index=False, header=False)
    assert read_data(path).names is None
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)
    pd.DataFrame(MATRIX).to_csv(path, index=False)
    assert read_data(path).names == ("0", "1", "2")
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)
    np.savetxt(path, MATRIX, delimiter=",", header="a,b,c")
    assert read_data(path).names == ("a", "b", "c")
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)


def test_a_csv_file_may_be_quoted_and_have_blank_lines(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('\n"a","b, c"\n\n"1","2"\n\n3,4\n\n')
    data = read_data(path)
    assert data.names == ("a", "b, c")
    assert everything(data).tolist() == [[1, 2], [3, 4]]


def test_columns_of_a_csv_file_are_chosen_past_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("name,x,y\nann,1,2\nbob,3,4\n")
    data = read_data(path, columns=["y", "x"])
    assert data.names == ("y", "x")
    assert everything(data).tolist() == [[2, 1], [4, 3]]
    path.write_text("ann,1,2\nbob,3,4\n")
    assert everything(read_data(path, columns=[2])).tolist() == [[2], [4]]
    FRAME.to_csv(path)
    np.testing.assert_array_equal(everything(read_data(path, columns=FRAME.columns)), MATRIX)
    assert "column 0 (counted from 0) has none; name it" in refused(path)


CSV = {
    "text in a column": ("a,b\n1,2\n\n3,x y\n", "line 4 of {} holds 'x y' in column 'b'"),
    "text without header": ("1,2,3\n4,5,?\n", "line 2 of {} holds '?' in column 2 (counted"),
    "text in line 1": ("1,2,?\n4,5,6\n", "line 1 of {} holds '?' in column 2 (counted"),
    "an empty cell": ("a,b\n1,\n", "line 2 of {} is empty in column 'b'"),
    "a list in a cell": ('a,b\n"1,5",2\n', "holds '1,5' in column 'a'; write numbers with"),
    "doubtful thousands": ('a,b\n"1,234",2\n', "'1,234' in column 'a', a thousand or a fraction;"),
    "doubtful fractions": ("a;b\n1,5;1.234\n", "'1.234' in column 'b', a thousand or a fraction;"),
    "two decimal marks": (
        "a;b\n" + "1,5;2,5\n" * 9999 + "1.5;2,5\n",
        "holds '1.5' in column 'a'; wri",
    ),
    "a short line": ("a,b\n1,2\n3\n", "2 cells in every line of {}, but line 3 has 1"),
    "a long line": ("a,b\n1,2\n3,4,5\n", "2 cells in every line of {}, but line 3 has 3"),
    "a long quoted line": ('a,b\n1,2\n"3",4,5\n', "but line 3 has 3"),
    "a header only": ("a,b\n", "{} has only a header"),
    "blank lines": ("\n\n", "{} has none"),
    "nothing": ("", "but {} is empty"),
    "another encoding": (b"\x81,b\n1,2\n", "in UTF-8 or Windows-1252, but {} is written otherwise"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "{} looks like a text file in UTF-16"),
}


@pytest.mark.parametrize(("content", "words"), CSV.values(), ids=CSV)
def test_what_a_csv_file_must_not_hold(tmp_path, content, words):
    path = tmp_path / "x.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words.replace("{}", str(path)) in refused(path)


def test_columns_that_are_not_there_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,a\n1,2,3\n")
    assert f"one column 'c' in {path}, but it is not there;" in refused(path, columns=["c"])
    assert "there are 2; choose one of a, b, a" in refused(path, columns=["a"])
    assert "one or more different columns" in refused(path, columns=[])
    assert "but got b, b" in refused(path, columns=["b", "b"])


def test_parquet_of_pandas_comes_back(tmp_path):
    path = tmp_path / "x.parquet"
    frame = FRAME.assign(n=np.arange(50), yes=True, text="x").set_index(FRAME["a"].rename("i"))
    frame.to_parquet(path, row_group_size=20)
    assert "column 'text' of" in refused(path)
    data = read_data(path, columns=["ü", "n", "yes"])
    assert data.names == ("ü", "n", "yes")
    np.testing.assert_array_equal(everything(data), frame[["ü", "n", "yes"]].to_numpy(np.float32))
    frame.drop(columns="text").to_parquet(path)
    assert read_data(path).names == ("a", "b b", "ü", "n", "yes")
    assert "one column 'c' in" in refused(path, columns=["c"])


def test_gaps_and_numbers_beyond_float32_stay_visible(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1e300, -1e300]})
    frame.to_parquet(tmp_path / "x.parquet")
    numbers = everything(read_data(tmp_path / "x.parquet"))
    np.testing.assert_array_equal(numbers, [[1, np.inf], [np.nan, -np.inf]])
    (tmp_path / "x.csv").write_text("1e300,nan\n2,3\n")
    np.testing.assert_array_equal(
        everything(read_data(tmp_path / "x.csv")), [[np.inf, np.nan], [2, 3]]
    )


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_gives_its_one_array_or_the_one_that_is_named(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, x=MATRIX)
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)
    save(path, x=MATRIX, y=2 * MATRIX)
    np.testing.assert_array_equal(everything(read_data(path, key="y")), 2 * MATRIX)
    assert f"a key that says which, but the arrays in {path} are: x, y" in refused(path)
    assert "an array 'z', but" in refused(path, key="z")


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_group_gives_its_one_array_or_the_one_that_is_named(tmp_path, version):
    path = tmp_path / "store.zarr"
    group = zarr.create_group(path, zarr_format=version)
    group.create_array("x", data=MATRIX, chunks=(8, 2))
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)
    group.create_array("y", data=2 * MATRIX)
    np.testing.assert_array_equal(everything(read_data(path, key="y")), 2 * MATRIX)
    assert "a key that says which" in refused(path)
    path.rename(tmp_path / "store")
    assert read_data(tmp_path / "store", key="x").shape == (50, 3)


@pytest.mark.parametrize(
    ("modes", "suffix", "channels"),
    [("L", "png", 1), ("RGB", "jpg", 3), ("RGBA", "png", 4), ("P", "png", 3), ("1", "png", 1)],
)
def test_images_are_channels_first_in_the_unit_interval(tmp_path, modes, suffix, channels):
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / ".hidden.png").write_text("no image")
    for name, level in [("b", 255), ("a", 0)]:
        Image.new("L", (5, 4), level).convert(modes).save(tmp_path / f"{name}.{suffix.upper()}")
    data = read_data(tmp_path)
    assert data.shape == (2, channels, 4, 5)
    numbers = everything(data)
    assert numbers[0, 0].max() == 0  # a before b
    assert numbers[1].min() == 1


def damaged(path, share=0.6):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return path


def text(path):
    path.write_text("a,b\n1,2\n")
    return path


def pickled(path):
    np.save(path, np.array([{}, None]), allow_pickle=True)
    return path


def pickled_archive(path):
    np.savez(path, x=np.array([[{}, None]]))
    return path


def cut_npy(path):
    np.save(path, MATRIX)
    return damaged(path)


def cut_npz(path):
    np.savez(path, x=MATRIX)
    return damaged(path)


def spoilt_npz(path):
    np.savez(path, x=MATRIX)
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    return path


def other_zip(path):
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")
    return path


def cut_parquet(path):
    FRAME.to_parquet(path)
    return damaged(path)


def image(path):
    with path.open("wb") as file:
        Image.new("L", (4, 4)).save(file, "png")
    return path


def renamed_array(path):
    with path.open("wb") as file:
        np.save(file, MATRIX)
    return path


def vector(path):
    np.save(path, MATRIX[:, 0])
    return path


FILES = {
    "missing": ("x.npy", lambda path: path, "does not exist; known are .npy, .npz, .csv"),
    "unknown": ("x.xlsx", text, "Expected .npy, .npz, .csv"),
    "text as npy": ("x.npy", text, "{} looks like a text file; rename it"),
    "text as npz": ("x.npz", text, "{} looks like a text file; rename it"),
    "text as parquet": ("x.parquet", text, "{} looks like a text file; rename it"),
    "text as zarr": ("x.zarr", text, "Expected a zarr store"),
    "image as csv": ("x.csv", image, "{} looks like a PNG image"),
    "array as npz": ("x.npz", renamed_array, "{} looks like a numpy array (.npy)"),
    "pickle": ("x.npy", pickled, "{} holds pickled objects"),
    "pickle in npz": ("x.npz", pickled_archive, "a whole .npz archive of numbers"),
    "cut npy": ("x.npy", cut_npy, "a whole .npy file of numbers"),
    "cut npz": ("x.npz", cut_npz, "a whole .npz archive of numbers"),
    "spoilt npz": ("x.npz", spoilt_npz, "a whole .npz archive of numbers"),
    "another zip": ("x.npz", other_zip, "a zip file of something else"),
    "cut parquet": ("x.parquet", cut_parquet, "a whole parquet file"),
    "vector": ("x.npy", vector, "reshape a single dimension with [:, None]"),
}


@pytest.mark.parametrize(("name", "write", "words"), FILES.values(), ids=FILES)
def test_files_that_are_not_what_their_name_says(tmp_path, name, write, words):
    path = write(tmp_path / name)
    assert words.replace("{}", str(path)) in refused(path)


def test_keys_and_columns_are_refused_where_there_are_none(tmp_path):
    np.save(tmp_path / "x.npy", MATRIX)
    assert "is neither" in refused(tmp_path / "x.npy", key="x")
    assert "is neither" in refused(tmp_path / "x.npy", columns=["x"])
    zarr.create_array(tmp_path / "x.zarr", data=MATRIX)
    assert "holds a single array" in refused(tmp_path / "x.zarr", key="x")


def test_damaged_chunks_of_zarr_are_told_when_they_are_read(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=MATRIX, chunks=(10, 3))
    damaged(tmp_path / "x.zarr" / "c" / "3" / "0")
    data = read_data(tmp_path / "x.zarr")
    assert data.take(torch.arange(30)).shape == (30, 3)
    with pytest.raises(DemixError, match="one of them is damaged"):
        data.take(torch.tensor([31]))
    (tmp_path / "x.zarr" / "zarr.json").write_text("{")
    assert "Expected a zarr store" in refused(tmp_path / "x.zarr")


def test_folders_of_anything_else_are_refused(tmp_path):
    assert "Expected a folder of .png, .jpg, .webp, .tif or .bmp images" in refused(tmp_path)
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    text(tmp_path / "b.png")
    assert f"{tmp_path / 'b.png'} looks like a text file" in refused(tmp_path)
    Image.new("L", (4, 5)).save(tmp_path / "b.png")
    told = refused(tmp_path)
    assert "4 x 4 pixels in L as a.png" in told
    assert f"{tmp_path / 'b.png'} is 4 x 5 pixels in L" in told
    Image.new("RGB", (4, 4)).save(tmp_path / "b.png")
    assert "b.png is 4 x 4 pixels in RGB" in refused(tmp_path)
    Image.new("I;16", (4, 4)).save(tmp_path / "b.png")
    assert "8 bits for each channel" in refused(tmp_path)
    (tmp_path / "b.png").write_bytes(b"")
    assert "b.png looks like an empty file" in refused(tmp_path)


def test_a_damaged_image_is_told_when_it_is_decoded(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, size=(40, 40), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    Image.fromarray(noise).save(tmp_path / "b.png")
    damaged(tmp_path / "b.png")
    data = read_data(tmp_path)
    data.take(torch.tensor([0]))
    with pytest.raises(DemixError, match=r"b\.png cannot be decoded"):
        data.take(torch.tensor([1]))


@pytest.mark.parametrize(("name", "library"), [("x.zarr", "zarr"), ("x.parquet", "pyarrow")])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    tmp_path, monkeypatch, name, library
):
    if library == "zarr":
        zarr.create_array(tmp_path / name, data=MATRIX)
    else:
        FRAME.to_parquet(tmp_path / name)
    monkeypatch.setitem(sys.modules, library, None)
    told = refused(tmp_path / name)
    assert f"needs {library}, which is not installed" in told
    assert "pip install 'demix-ica[files]'" in told


def test_csv_and_npy_need_no_library_of_the_extra(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    np.save(tmp_path / "x.npy", MATRIX)
    for library in ("zarr", "pyarrow", "pandas"):
        monkeypatch.setitem(sys.modules, library, None)
    assert read_data(tmp_path / "x.csv").shape == read_data(tmp_path / "x.npy").shape
