"""Labels, pairs and time of rows are read and checked."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sentences import refusal

from demix import DemixWarning, read_labels, read_pairs
from demix.data.moments import spacing
from demix.data.supervision import check_pairs, check_time, read_time


@pytest.mark.parametrize(
    "pairs",
    [
        [[0, 1], [2, 1], [3, 0]],
        np.array([[0, 1], [2, 1], [3, 0]], dtype=np.uint8),
        torch.tensor([[0, 1], [2, 1], [3, 0]], dtype=torch.int32),
    ],
)
def test_pairs_become_int64(pairs):
    checked = check_pairs(pairs, 4)
    assert checked.dtype == torch.int64
    assert checked.tolist() == [[0, 1], [2, 1], [3, 0]]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([0, 1, 2], "pairs (P, 2) of row numbers, but got shape (3,)"),
        ([[0, 1, 2]], "got shape (1, 3)"),
        ([], "got shape (0,)"),
        ([[0, 1], [2]], "pairs as an array"),
        ([[0.0, 1.0]], "of type float64; convert them"),
        (torch.zeros(2, 2, dtype=torch.bfloat16), "of type float32; convert them"),
        ([[0, 1], [1, 4], [-1, 2]], "rows 0..3, but 2 of 3 point outside the data, the first of"),
        ([[0, 1], [1, 4]], "pair 1, (1, 4)"),
        ([[0, 0], [1, 1], [0, 1]], "67% of 3 pair a row with itself"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(pairs, words):
    assert words in refusal(check_pairs, pairs, 4)


def test_a_row_may_sometimes_be_paired_with_itself():
    pairs = np.stack([np.arange(200), np.arange(1, 201)], axis=1)
    pairs[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_pairs(pairs, 201)
    pairs[1:10, 1] = pairs[1:10, 0]
    with pytest.warns(DemixWarning, match="5.0% of 200 pairs pair a row with itself"):
        check_pairs(pairs, 201)


def test_pairs_are_read_exactly(tmp_path):
    pairs = np.array([[2**24, 2**24 + 1], [5, 6]])  # float32 cannot tell the first two apart
    np.save(tmp_path / "p.npy", pairs)
    pd.DataFrame(pairs, columns=["i", "j"]).to_csv(tmp_path / "p.csv", index=False)
    for name in ("p.npy", "p.csv"):
        assert read_pairs(tmp_path / name, 2**25).tolist() == pairs.tolist()
    assert "point outside the data" in refusal(read_pairs, tmp_path / "p.csv", 100)
    (tmp_path / "p.csv").write_text("0,1\n1,2.5\n")
    assert "Expected whole numbers, but line 2" in refusal(read_pairs, tmp_path / "p.csv", 9)
    assert "is no such file" in refusal(read_pairs, tmp_path / "q.csv", 9)
    (tmp_path / "p.txt").write_text("0,1\n")
    assert "is neither" in refusal(read_pairs, tmp_path / "p.txt", 9)


@pytest.mark.parametrize(
    "time",
    [
        [0, 1, 1, 5],
        torch.tensor([0.0, 0.5]),
        np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"),
        np.array([255, 255], dtype=np.uint8),
    ],
)
def test_time_may_stand_still_but_not_run_back(time):
    check_time(time)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ([0.0, 2.0, 1.0, 0.0], "row 2 (counted from 0) is at 1.0 after 2.0; sort"),
        (np.array([5, 3], dtype=np.uint8), "row 1 (counted from 0) is at 3 after 5"),
        ([0.0, np.nan, 1.0], "row 1 (counted from 0) is at nan"),
        ([0.0, np.inf], "row 1 (counted from 0) is at inf"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), "is at NaT"),
        ([[0.0, 1.0]], "one moment for each row, (N,), but time is (1, 2)"),
        ([], "but time is (0,)"),
        (["a", "b"], "but got <U1"),
    ],
)
def test_time_that_cannot_be_used_is_refused(time, words):
    assert words in refusal(check_time, time)


def test_time_is_read_in_double_precision(tmp_path):
    time = 1.7e9 + np.arange(5) / 8
    np.save(tmp_path / "t.npy", time)
    pd.DataFrame({"t": time}).to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.npy", "t.csv"):
        assert read_time(tmp_path / name).tolist() == time.tolist()
    (tmp_path / "t.csv").write_text("0\n0.5\n1\n")
    assert read_time(tmp_path / "t.csv").tolist() == [0, 0.5, 1]
    (tmp_path / "t.csv").write_text("0\n1\n0.2\n")
    assert "in the order of time" in refusal(read_time, tmp_path / "t.csv")


def test_time_of_whole_numbers_is_read_exactly(tmp_path):
    start = 1_700_000_000_000_000_000  # nanoseconds since 1970, of which float64 merges hundreds
    (tmp_path / "t.csv").write_text(f"t\n{start}\n{start + 1}\n")
    assert read_time(tmp_path / "t.csv").tolist() == [start, start + 1]
    (tmp_path / "t.csv").write_text(f"{start + 1}\n{start}\n")
    assert "in the order of time" in refusal(read_time, tmp_path / "t.csv")


def test_numbers_are_labels_as_they_are(tmp_path):
    np.save(tmp_path / "y.npy", np.array([3, 1, 1], dtype=np.uint8))
    (tmp_path / "a.csv").write_text("class\n3\n1\n1\n")
    (tmp_path / "b.csv").write_text("3\n1\n1\n")
    for name in ("y.npy", "a.csv", "b.csv"):
        labels = read_labels(tmp_path / name)
        assert labels.values.tolist() == [3, 1, 1]
        assert labels.values.dtype == np.int64
        assert labels.names is None


def test_text_is_numbered_and_kept(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["dog", "cat", "dog"]))
    (tmp_path / "a.csv").write_text("animal\ndog\ncat\ndog\n")
    (tmp_path / "b.csv").write_text("dog\ncat\ndog\n")
    for name in ("y.npy", "a.csv", "b.csv"):
        labels = read_labels(tmp_path / name)
        assert (labels.values.tolist(), labels.names) == ([1, 0, 1], ("cat", "dog"))
    frame = pd.DataFrame({"x": [0.5, 1.5], "who": ["b, c", "a"], "n": [7, 8]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read_labels(tmp_path / "t.csv", column="who").names == ("a", "b, c")
    assert read_labels(tmp_path / "t.csv", column="n").values.tolist() == [7, 8]
    assert "'0.5'" in refusal(read_labels, tmp_path / "t.csv", column="x")
    assert "choose one of x, who, n" in refusal(read_labels, tmp_path / "t.csv")
    assert "one column 'z' in" in refusal(read_labels, tmp_path / "t.csv", column="z")


@pytest.mark.parametrize("mark", ["NA", "nan", "None", "N/A", "-", "<NA>"])
def test_what_is_missing_is_no_class(mark, tmp_path):
    (tmp_path / "a.csv").write_text(f"class\n0\n1\n{mark}\n0\n")
    (tmp_path / "b.csv").write_text(f"animal\ncat\n{mark}\ndog\n")
    np.save(tmp_path / "c.npy", np.array(["cat", "dog", mark]))
    for name, row in (("a.csv", 2), ("b.csv", 1), ("c.npy", 2)):
        told = refusal(read_labels, tmp_path / name)
        assert f"row {row} (counted from 0) is missing ({mark!r}); leave" in told or "'nan'" in told


@pytest.mark.parametrize("cells", ["1\n01\n2\n", "label\n-0\n0\n", "1\n+1\n"])
def test_labels_that_would_become_one_number_are_refused(cells, tmp_path):
    (tmp_path / "y.csv").write_text(cells)
    assert "Expected one spelling of a label" in refusal(read_labels, tmp_path / "y.csv")


def test_labels_that_cannot_be_used_are_refused(tmp_path):
    csv, npy = tmp_path / "y.csv", tmp_path / "y.npy"
    csv.write_text("a,b\n1,2\n3,\n")
    assert f"line 3 of {csv} has none" in refusal(read_labels, csv, column="b")
    csv.write_text("a\n")
    assert "has only a header" in refusal(read_labels, csv)
    np.save(npy, np.zeros((3, 2), dtype=int))
    assert "has shape (3, 2)" in refusal(read_labels, npy)
    assert "but y.npy is" in refusal(read_labels, npy, column="a").replace(f"{tmp_path}/", "")
    for broken in (0.5, np.nan, np.inf, 1e300):
        np.save(npy, np.array([1, broken]))
        assert "Expected labels" in refusal(read_labels, npy)


def test_whole_numbers_with_a_point_and_single_columns_are_labels(tmp_path):
    csv, npy = tmp_path / "y.csv", tmp_path / "y.npy"
    csv.write_text("y\n1.0\n0.0\n1.0\n")
    for array in (np.array([1.0, 0, 1]), np.array([[1], [0], [1]]), np.array([1, 0, 1], "f2")):
        np.save(npy, array)
        for path in (csv, npy):
            labels = read_labels(path)
            assert (labels.values.dtype, labels.values.tolist()) == (np.int64, [1, 0, 1])
    csv.write_text("1\n1.0\n2\n")
    assert "Expected one spelling of a label" in refusal(read_labels, csv)


@pytest.mark.parametrize(
    ("cells", "words", "uneven"),
    [
        (["31.12.2024 23:50", "01.01.2025 00:00", "01.01.2025 00:10"], "10 min", 0),
        (["2024-12-31T23:50:00", "2025-01-01T00:00:00"], "10 min", 0),
        (["2024-03-31T00:00+01:00", "2024-03-31T00:00Z", "2024-03-31T04:00+02:00"], "90 min", 2),
        (["12/31/2024 1:00 PM", "12/31/2024 2:00 PM", "1/1/2025 1:00 PM"], "12 h", 2),
        (["31/12/2024", "01/01/2025"], "1 d", 0),
        (["1/2/2024 0:00", "1/2/2024 0:10", "1/3/2024 0:20"], None, 0),
        (["1/2/2024", "1/3/2024", "1/4/2024"], None, 0),
        (["1/2/2024 0:00", "1/2/2024 0:10", "1/2/2024 0:20"], None, 0),
        (["1/2/2024 23:50", "1/3/2024 0:00", "1/3/2024 0:10"], "10 min", 0),
        (["1/1/2024 0:00", "1/1/2024 0:10"], "10 min", 0),
        (["20240131", "20240201"], "1 d", 0),
        (["20240131", "20240132"], "1", 0),
        (["2024-01-31", "2024-02-29", "2024-03-31"], "month", 0),
        (["01.02.24", "01.05.24"], "3 months", 0),
        (["0", "0.5", "1.001", "1.5", "3"], "0.5005", 1),
        (["7"], "0", 0),
        (["2024123123", "2025010100"], "1 h", 0),
        (["202412312350", "202501010000"], "10 min", 0),
        (["1704067200", "1704067800"], "600", 0),
        # Clocks were set back.
        (
            ["27.10.2024 02:40", "27.10.2024 02:50", "27.10.2024 02:00", "27.10.2024 02:10"],
            "10 min",
            0,
        ),
        (
            ["2024-10-27T01:00", "2024-10-27T02:00", "2024-10-27T02:00", "2024-10-27T03:00"],
            "1 h",
            0,
        ),
    ],
)
def test_time_is_numbers_or_dates_with_a_step(tmp_path, cells, words, uneven):
    (tmp_path / "t.csv").write_text("\n".join(["time,x", *(f"{cell},1" for cell in cells)]))
    if words is None:
        told = refusal(read_time, tmp_path / "t.csv", column="time")
        assert "whose day and month can be told apart" in told
        return
    step, other = spacing(read_time(tmp_path / "t.csv", column="time"))
    assert (step, int(other.sum())) == (words, uneven)


def test_the_cell_that_is_no_moment_is_told(tmp_path):
    (tmp_path / "t.csv").write_text("t\n31.12.2024\n01.01.2025\nlater\n")
    told = refusal(read_time, tmp_path / "t.csv")
    assert "or as dates such as 2024-12-31 13:45 or 31.12.2024 13:45" in told
    assert "holds 'later'; mend it" in told
    (tmp_path / "t.csv").write_text("t\n0001-01-01T00:00+23:59\n")
    assert "Expected time as numbers or as dates" in refusal(read_time, tmp_path / "t.csv")


def test_time_and_labels_are_columns_of_parquet_files(tmp_path):
    days = pd.date_range("2024-12-31", periods=3, freq="h")
    frame = pd.DataFrame({"t": days, "who": ["b", "a", "b"], "x": [0.5, 1, 2]})
    frame.to_parquet(tmp_path / "x.parquet")
    assert spacing(read_time(tmp_path / "x.parquet", column="t"))[0] == "1 h"
    assert read_labels(tmp_path / "x.parquet", column="who").names == ("a", "b")
