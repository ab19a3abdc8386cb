"""Rows are matched by name; names are read from whatever holds them."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from demix import DemixError, read_factors
from demix.data.names import match_rows, read_names, table_names

NAMES = ["c.png", "a.png", "b.png"]


def test_rows_of_the_same_name_belong_together_whatever_their_order():
    random = np.random.default_rng(0)
    names = np.array([f"{i}.png" for i in range(50)])
    first, second = random.permutation(names)[:40], random.permutation(names)[:40]
    found = match_rows(first, second)
    assert (first[found.first] == second[found.second]).all()
    assert len(found.first) == len(set(first) & set(second))
    assert found.only_first == [name for name in first if name not in second]
    assert found.only_second == [name for name in second if name not in first]


def test_folders_are_left_out_only_where_whole_names_do_not_match():
    found = match_rows(["val/1.png", "val/2.png"], [r"C:\all\2.png", r"C:\all\1.png"])
    assert found.second.tolist() == [1, 0]
    found = match_rows(["a/1.png", "b/1.png"], ["b/1.png", "c/1.png"])
    assert (found.first.tolist(), found.second.tolist()) == ([1], [0])
    with pytest.raises(DemixError, match="share none"):
        match_rows(["a/1.png", "b/1.png"], ["c/1.png"])


def test_names_that_cannot_be_matched():
    words = r"rows 0 and 2 \(counted from 0\) are both called 'a'"
    with pytest.raises(DemixError, match=f"each row of F.npy, but {words}"):
        match_rows(["a", "b", "a"], ["a"], called=("F.npy", "y.csv"))
    with pytest.raises(DemixError, match="theirs are a, b, c and 2 more and x"):
        match_rows(list("abcde"), ["x"])


def test_names_in_files_of_all_kinds(tmp_path):
    (tmp_path / "names.txt").write_text("\n".join(NAMES) + "\n")
    (tmp_path / "one.csv").write_text("\n".join(["file", *NAMES]))
    frame = pandas.DataFrame({"x": [1.5, 2, 3], "file": NAMES, "number": [7, 8, 9]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    frame.set_index("file").to_parquet(tmp_path / "index.parquet")
    np.save(tmp_path / "names.npy", np.array(NAMES))
    for file in ("names.txt", "one.csv", "names.npy"):
        assert read_names(tmp_path / file) == NAMES
    for file in ("table.csv", "table.parquet", "index.parquet"):
        assert read_names(tmp_path / file, "file") == NAMES
        assert read_names(tmp_path / file, "number") == ["7", "8", "9"]
        assert sorted(table_names(tmp_path / file)) == ["file", "number", "x"]
    assert table_names(tmp_path / "names.npy") is None


@pytest.mark.parametrize(
    ("file", "content", "column", "words"),
    [
        ("names.txt", b"a\n\nb\n", None, "every line of .*, but line 2 is empty"),
        ("names.txt", b"", None, "is empty; write it again"),
        ("names.txt", b"\n\n", None, "but it is empty"),
        ("names.txt", b"a\xfe\xfea", None, "names in UTF-8"),
        ("names.txt", b"\xff\xfe\x00a", None, "looks like a text file in UTF-16"),
        ("names.csv", b"file,x\na,1\n,2\n", "file", "Expected a name in each line, but line 3"),
        ("names.csv", b"file,x\na,1\n", None, "but there are 2; choose one of file, x"),
        ("names.csv", b"file,x\na,1\n", "path", "Expected one column 'path'"),
        ("names.npz", b"", None, "is neither"),
        ("nowhere.txt", None, None, "is no such file"),
    ],
)
def test_files_without_a_name_for_each_row(tmp_path, file, content, column, words):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(DemixError, match=words):
        read_names(tmp_path / file, column)


def test_arrays_and_parquet_files_without_a_name_for_each_row(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(DemixError, match="a name for each row"):
        read_names(tmp_path / "x.npy")
    pandas.DataFrame({"file": ["a", None]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DemixError, match=r"row 1 \(counted from 0\) of column 'file'"):
        read_names(tmp_path / "x.parquet", "file")


def test_one_of_several_columns_of_a_parquet_file_is_to_be_chosen(tmp_path):
    frame = pandas.DataFrame({"file": ["a", "b"], "x": [1, 2]}, index=[4, 7])
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DemixError, match=r"one column in .*, but there are 2; choose one of file"):
        read_names(tmp_path / "x.parquet")
    frame[["file"]].to_parquet(tmp_path / "x.parquet")  # with its index
    assert read_names(tmp_path / "x.parquet") == ["a", "b"]
    frame.set_index("file")[[]].to_parquet(tmp_path / "x.parquet")
    assert read_names(tmp_path / "x.parquet") == ["a", "b"]


def test_a_parquet_file_without_columns_has_no_names(tmp_path):
    pandas.DataFrame(index=range(2)).to_parquet(tmp_path / "x.parquet", index=False)
    with pytest.raises(DemixError, match=r"Expected one column in .*, but it is not there"):
        read_names(tmp_path / "x.parquet")


def test_factors_in_parquet_files_may_be_text(tmp_path):
    frame = pandas.DataFrame(
        {"shape": ["cube", "ball"], "size": [1, 2], "kind": pandas.Categorical(["a", "b"])},
        index=["first", "second"],
    )
    frame.to_parquet(tmp_path / "f.parquet")
    factors = read_factors(tmp_path / "f.parquet")
    assert factors.names == ("shape", "size", "kind")
    assert factors.values.tolist() == [["cube", 1, "a"], ["ball", 2, "b"]]
    frame[["shape"]].to_parquet(tmp_path / "text.parquet")
    assert read_factors(tmp_path / "text.parquet").values.tolist() == [["cube"], ["ball"]]
    frame[["size"]].to_parquet(tmp_path / "numbers.parquet")
    assert read_factors(tmp_path / "numbers.parquet").values.dtype == np.float64
