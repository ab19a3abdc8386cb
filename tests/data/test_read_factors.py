"""Factors are read as numbers and text; what is neither is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sentences import written

from demix import DemixError, read_factors


def test_numbers_are_read_as_data_are(tmp_path):
    factors = read_factors(written(tmp_path / "factors.csv", "a,b\n1,2\n3,4.5\n"))
    assert factors.values.tolist() == [[1, 2], [3, 4.5]]
    assert factors.names == ("a", "b")
    np.save(tmp_path / "f.npy", np.arange(6).reshape(3, 2))
    factors = read_factors(tmp_path / "f.npy")
    assert factors.values.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert factors.names is None


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("size,shape\n1,cube\n2,ball\n", ("size", "shape"), [[1, "cube"], [2, "ball"]]),
        ("1,cube\n2,ball\n3,cube\n", None, [[1, "cube"], [2, "ball"], [3, "cube"]]),
        ("shape\ncube\nball\ncube\n", ("shape",), [["cube"], ["ball"], ["cube"]]),
        ("cube\nball\ncube\n", None, [["cube"], ["ball"], ["cube"]]),
        ("a;b;c\n0.5;x;y\n1;x;z\n", ("a", "b", "c"), [[0.5, "x", "y"], [1, "x", "z"]]),
        ("x,y,1.5\nx,z,2\n", None, [["x", "y", 1.5], ["x", "z", 2]]),
    ],
)
def test_columns_of_text(tmp_path, text, names, rows):
    factors = read_factors(written(tmp_path / "factors.csv", text))
    assert factors.names == names
    assert factors.values.tolist() == rows


def test_arrays_of_text(tmp_path):
    np.save(tmp_path / "f.npy", np.array([["a", "b"], ["c", "d"]]))
    assert read_factors(tmp_path / "f.npy").values.tolist() == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size,kind\n1,x\nn/a,x\n3,y\n", "line 3 .* holds 'n/a' in column size, which is numbers"),
        ("size,kind\n1,x\n2,\n3,y\n", "line 3 .* is empty in column kind"),
        ("1,x\n2,7\n3,y\n4,x\n", "line 2 .* holds '7' in column 1, which is text elsewhere"),
        ("a,b\n1,x\n2\n", "Expected 2 cells in every line"),
        ("a,b\n1,2\n3,\n", "is empty"),
        ("", "is empty"),
    ],
)
def test_what_is_neither(tmp_path, text, words):
    with pytest.raises(DemixError, match=words):
        read_factors(written(tmp_path / "factors.csv", text))


@pytest.mark.parametrize("header", ["size,height,kind\n", "size,height\n", '"2,5","0,3",x\n', ""])
@pytest.mark.parametrize("cell", ["1,9", "-0,8", "2,900"])
def test_numbers_with_doubtful_commas_are_no_categories(tmp_path, header, cell):
    kind = ",x" if "kind" in header or "x" in header else ""
    lines = f'"{cell}",3{kind}\n"1,1","0,4"{kind}\n2,"0,4"{kind}\n'
    with pytest.raises(DemixError, match=r"in column .*; write numbers with a decimal mark alone"):
        read_factors(written(tmp_path / "f.csv", header + lines))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("size;kind\n1,9;x\n-0,8;y\n", [[1.9, "x"], [-0.8, "y"]]),
        ("1,9;0,8\n2;3\n4;5\n", [[1.9, 0.8], [2, 3], [4, 5]]),
        ('a,b\n"1,234.5",x\n"2,900",y\n', [[1234.5, "x"], [2900, "y"]]),
    ],
)
def test_numbers_with_clear_commas_are_numbers(tmp_path, text, rows):
    assert read_factors(written(tmp_path / "f.csv", text)).values.tolist() == rows


def test_words_with_commas_are_categories(tmp_path):
    factors = read_factors(written(tmp_path / "f.csv", "a;b\n1,2;1\n1,x;2\n"))
    assert factors.values.tolist() == [["1,2", 1], ["1,x", 2]]


def test_what_has_no_rows(tmp_path):
    np.save(tmp_path / "f.npy", np.empty((0, 2), dtype="U3"))
    pd.DataFrame({"a": [], "b": []}, dtype=float).to_parquet(tmp_path / "f.parquet")
    for name in ("f.npy", "f.parquet"):
        with pytest.raises(DemixError, match=r"at least one row and column, .* shape \(0, 2\)"):
            read_factors(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DemixError, match="does not exist"):
        read_factors(tmp_path / "none.csv")


@pytest.mark.parametrize("text", ["", "name,size\n"])
@pytest.mark.parametrize("other", ["2.5", "cube"])
@pytest.mark.parametrize("both", [("1", "01"), ("0e1", "0e5"), ("1", "1.0")])
def test_categories_written_in_two_ways_do_not_merge(tmp_path, text, other, both):
    path = tmp_path / "x.csv"
    path.write_text(text + "".join(f"{cell},{other}\n" for cell in both * 5))
    with pytest.raises(DemixError, match=f"one spelling of a category.* {both[0]} and {both[1]};"):
        read_factors(path)


def test_numbers_that_are_no_categories_may_be_written_in_any_way(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n0.0,1\n-0.0,1.50\n1.0,01.5\n-1.0,1.0\n")
    assert read_factors(path).values.tolist() == [[0, 1], [0, 1.5], [1, 1.5], [-1, 1]]
