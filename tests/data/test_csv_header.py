"""Headers of numbers are asked about, and blank lines of a single column are no rows to skip."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import written

from demix import DemixError, DemixWarning, read_data, read_factors, read_labels, read_pairs
from demix.data.names import read_names, table_names
from demix.data.supervision import read_time

YEARS = "1990,1991,1992\n5,3,7\n6,2,8\n"


def numbers(path, **options) -> list:
    return read_factors(path, **options).values.tolist()


DOUBTFUL = {
    "years": (YEARS, "(1990, 1991, 1992)"),
    "two years": ("1990,1991\n5,3\n", "(1990, 1991)"),
    "counted from 0": ("0,1,2,3\n5,3,7,9\n", "(0, 1, 2, ...)"),
    "whole above broken": ("10,30\n0.5,0.7\n", "(10, 30)"),
    "whole above a gap": ("10,30\n2,nan\n", "(10, 30)"),
    "wavelengths": ("400.0,402.5,406.0\n0.5,0.7,0.6\n0.1,0.2,0.3\n", "(400.0, 402.5, 406.0)"),
    "going down": ("9.5,8.5,7\n1,2,1\n", "(9.5, 8.5, 7)"),
    "one column": ("0\n1.5\n-0.3\n", "(0)"),
    "one year": ("1990\n1.5\n", "(1990)"),
}


@pytest.mark.parametrize(("text", "cells"), DOUBTFUL.values(), ids=DOUBTFUL)
@pytest.mark.parametrize("read", [read_data, read_factors])
def test_a_first_line_that_may_be_a_header_is_told_of_once(tmp_path, read, text, cells):
    path = written(tmp_path / "x.csv", text)
    with pytest.warns(DemixWarning) as told:
        assert read(path).names is None
    assert table_names(path) is None  # of a file that is read as well
    (warning,) = told
    assert f"The first line of {path} {cells} was read as numbers" in str(warning.message)
    assert str(warning.message).endswith("say header='yes' or 'no' (--header on the command line).")


@pytest.mark.parametrize(
    "text",
    [
        "5,3\n6,2\n",  # whole numbers above whole ones, in no order
        "3,3\n0.5,0.7\n",  # alike
        "1.5,2.5\n1,2\n",
        "1.5,2.5,3.5\n1,2,1\n0,3,1\n",  # among others
        "1.5,2.5,3.5\n4.5,5.5,6.5\n7,8,9\n",  # as all rows
        "1.5,2.5,2.5\n1,0,1\n",
        "1.5,2.5,3.5\n",
        "0\n0.5\n1\n",  # time, for example
        "0\n",
        "5\n3\n",
        "0,1,2\n0.5,0.7,0.9\n",  # taken as a header
        "a,b\n1,2\n",
    ],
)
def test_other_first_lines_are_not_told_of(tmp_path, text):
    read_data(written(tmp_path / "x.csv", text))


def test_pairs_of_neighbours_are_not_told_of(tmp_path):
    for others in ("1,2", "0,2", "2,3"):
        path = written(tmp_path / "x.csv", f"0,1\n{others}\n7,8\n")
        assert read_pairs(path, 9).shape == (3, 2)
    assert read_pairs(written(path, "1,4\n7,8\n"), 9).shape == (2, 2)


@pytest.mark.parametrize("others", ["5,3", "0,7"])
def test_pairs_below_numbers_of_columns_are_told_of(tmp_path, others):
    path = written(tmp_path / "x.csv", f"0,1\n{others}\n")
    with pytest.warns(DemixWarning, match=r"\(0, 1\) was read as numbers but may be a header"):
        assert read_pairs(path, 9).shape == (2, 2)
    assert read_pairs(written(path, f"a,b\n{others}\n"), 9).shape == (1, 2)


def test_a_header_is_what_the_user_says(tmp_path):
    path = written(tmp_path / "x.csv", YEARS)
    assert numbers(path, header="yes") == [[5, 3, 7], [6, 2, 8]]
    assert read_data(path, header="yes").names == ("1990", "1991", "1992")
    assert read_data(path, header="yes", columns=["1991"]).shape == (2, 1)
    assert table_names(path, header="yes") == ["1990", "1991", "1992"]
    assert numbers(path, header="no") == [[1990, 1991, 1992], [5, 3, 7], [6, 2, 8]]
    assert table_names(path, header="no") is None
    path = written(tmp_path / "x.csv", "a,b\n1,2\n")
    for read in (read_data, read_factors):
        with pytest.raises(DemixError, match=r"Expected numbers, but line 1 of .* holds 'a'"):
            read(path, header="no")
    path = written(tmp_path / "x.csv", "1,2\n")
    with pytest.raises(DemixError, match="has only a header"):
        read_data(path, header="yes")


def test_a_header_above_text_is_what_the_user_says(tmp_path):
    path = written(tmp_path / "x.csv", "1990,1991\n1.5,cube\n2.5,ball\n")
    factors = read_factors(path, header="yes")
    assert (factors.names, factors.values.tolist()) == (
        ("1990", "1991"),
        [[1.5, "cube"], [2.5, "ball"]],
    )
    path = written(tmp_path / "x.csv", "red,cube\ngreen,ball\n")
    assert read_factors(path).names == ("red", "cube")
    factors = read_factors(path, header="no")
    assert (factors.names, factors.values.tolist()) == (None, [["red", "cube"], ["green", "ball"]])


@pytest.mark.parametrize("read", [read_data, read_factors, table_names])
def test_other_headers_are_refused(tmp_path, read):
    with pytest.raises(DemixError, match=r"'auto', 'yes' or 'no', but got 'maybe'\.$"):
        read(written(tmp_path / "x.csv", YEARS), header="maybe")
    if read is not table_names:
        np.save(tmp_path / "x.npy", np.eye(2))
        with pytest.raises(DemixError, match="but got 'maybe'"):
            read(tmp_path / "x.npy", header="maybe")


@pytest.mark.parametrize("read", [read_data, read_factors, read_time, read_labels, read_names])
@pytest.mark.parametrize(
    ("text", "line"),
    [("1\n2\n\n3\n", 3), ("a\n1\n\n\n3\n\n", 3), ("1\r\n\r\n2\r\n", 2), ("\n1\n2\n", 1)],
)
def test_a_blank_line_in_a_single_column_is_a_missing_value(tmp_path, read, text, line):
    with pytest.raises(DemixError, match=f"has one column, but line {line} is blank"):
        read(written(tmp_path / "x.csv", text))


def test_a_blank_line_among_text_is_a_missing_value(tmp_path):
    with pytest.raises(DemixError, match="but line 3 is blank"):
        read_factors(written(tmp_path / "x.csv", "cube\nball\n\ncube\n"))


def test_blank_lines_at_the_end_are_no_rows(tmp_path):
    path = written(tmp_path / "x.csv", "1\n2\n\n\n")
    assert numbers(path) == [[1], [2]]
    assert read_time(path).tolist() == [1, 2]
    assert read_labels(path).values.tolist() == [1, 2]
    assert read_names(path) == ["1", "2"]


def test_blank_lines_between_several_columns_are_skipped(tmp_path):
    assert numbers(written(tmp_path / "x.csv", "\na,b\n\n1,2\n\n\n3,4\n")) == [[1, 2], [3, 4]]


FAILED = {
    "errors": "#DIV/0!,#DIV/0!,#DIV/0!\n1,2,3\n4,5,6\n",
    "an error": "a,b,#REF!\n1,2,3\n4,5,6\n",
    "words": "error,error,error,0.1,0.2\n1,2,3,4,5\n2,3,4,5,6\n",
    "a number": "error,bad,worse,0.1\n1,2,3,4\n2,3,4,5\n",
    "twice": "a,b,a\n1,2,3\n4,5,6\n",
}


@pytest.mark.parametrize("text", FAILED.values(), ids=FAILED)
@pytest.mark.parametrize("read", [read_data, read_factors])
def test_a_first_row_that_failed_is_not_taken_for_names(tmp_path, read, text):
    with pytest.raises(DemixError, match=r"(first line|line 1) of .*x\.csv"):
        read(written(tmp_path / "x.csv", text))


def test_what_a_user_calls_names_may_be_odd(tmp_path):
    path = written(tmp_path / "x.csv", FAILED["a number"])
    assert read_data(path, header="yes").names == ("error", "bad", "worse", "0.1")
    assert read_data(path, columns=["bad", "0.1"]).shape == (2, 2)
    salts = written(tmp_path / "y.csv", "Na,K,Mg\n1,2,3\n4,5,6\n")  # no missing number
    assert read_data(salts).names == ("Na", "K", "Mg")


def test_an_error_above_text_is_not_taken_for_a_name(tmp_path):
    path = written(tmp_path / "x.csv", "#DIV/0!,cube\n1.5,ball\n2.5,cube\n")
    with pytest.raises(DemixError, match="or numbers in the first line of"):
        read_factors(path)


@pytest.mark.parametrize("word", ["NA", "#DIV/0!", "#NAME?"])
def test_a_missing_label_in_the_first_line_is_no_header(tmp_path, word):
    with pytest.raises(DemixError, match=r"that of row 0 .* is missing"):
        read_labels(written(tmp_path / "x.csv", f"{word}\ncube\nball\n"))
