"""Numbers stay in float64 where float32 would lose what matters, and only there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sentences import refusal

from demix import read_data, read_factors
from demix.data import csv_files
from demix.data.data import loses_precision, narrowed

NOISE = np.random.default_rng(0).normal(size=(1000, 3))


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (NOISE[:, 0], np.float32),
        (NOISE[:, 0] + 1e3, np.float32),
        (NOISE[:, 0] + 1e6, np.float64),
        (NOISE[:, 0] - 1e6, np.float64),
        (1e6 * (NOISE[:, 0] + 3), np.float32),
        (np.full(1000, 1_000_000.1), np.float32),
        (np.zeros(1000), np.float32),
        (np.full(1000, np.nan), np.float32),
        (np.where(NOISE[:, 1] > 0, np.nan, NOISE[:, 0] + 1e6), np.float64),
        (np.where(NOISE[:, 1] > 0, -np.inf, NOISE[:, 0]), np.float32),
        (np.where(NOISE[:, 1] > 1, 1e300, NOISE[:, 0] + 1e6), np.float64),
        (1e300 * NOISE[:, 0], np.float32),
        (1e38 * NOISE[:, 0].clip(-3, 3), np.float32),
        (2**40 + np.arange(1000), np.float64),
        ((NOISE[:, 0] + 1e6).astype(">f8"), np.float64),
        (np.arange(1000), np.float32),
        (np.arange(1000) > 5, np.float32),
    ],
)
def test_a_column_that_would_lose_by_it_is_not_narrowed(column, dtype):
    table = np.column_stack([np.zeros_like(column), column])
    found = narrowed(table)
    assert found.dtype == dtype
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, table.astype(dtype))


def test_images_and_empty_arrays_are_narrowed():
    assert narrowed(NOISE.reshape(10, 3, 10, 10)).dtype == np.float32
    assert narrowed(np.empty((0, 3))).shape == (0, 3)
    assert narrowed(np.empty((3, 0))).dtype == np.float32


def test_float32_is_not_copied():
    array = NOISE.astype(np.float32)
    assert narrowed(array) is array


def test_the_share_is_a_thousandth():
    spacing = float(np.spacing(np.float32(1e6)))
    told = loses_precision(np.full(4, 1e6), spacing * np.array([999, 1001, 0, np.nan]))
    assert told.tolist() == [True, False, False, False]


def test_tables_keep_what_float32_would_lose(tmp_path):
    frame = pd.DataFrame({"a": [1_000_000.25, 1_000_000.5, 1_000_000.75], "b": [1.0, 2.0, 4.0]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        data = read_data(tmp_path / name)
        assert data.rows[:3].tolist() == frame.to_numpy().tolist()
        assert read_factors(tmp_path / name).values.tolist() == frame.to_numpy().tolist()
        # By itself the column would lose nothing; but what is one row of it to a model far away?
        assert read_data(tmp_path / name, columns=["b"]).rows.dtype == np.float64


def test_what_is_float32_in_a_file_stays_so(tmp_path):
    frame = pd.DataFrame({"a": NOISE[:, 0].astype(np.float32), "b": np.arange(1000, dtype=np.int8)})
    frame.to_parquet(tmp_path / "x.parquet")
    rows = read_data(tmp_path / "x.parquet").rows
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows[:], frame.to_numpy())


def test_the_memory_of_float64_is_asked_for(tmp_path, monkeypatch):
    pd.DataFrame(NOISE).to_csv(tmp_path / "x.csv", index=False)
    asked = []
    monkeypatch.setattr(csv_files, "check_memory", lambda needed, *_: asked.append(needed))
    read_data(tmp_path / "x.csv")
    np.testing.assert_allclose(asked, [2 * NOISE.nbytes], rtol=0.1)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz", "mixed.csv", "mixed.parquet"])
@pytest.mark.parametrize(
    "codes",
    [
        [20231228, 20231229, 20240104, 20240105],  # days, which float32 merges in twos
        [101000001, 101000002, 905000001, 905000002],
        [0.1, 0.1 + 1e-12, 7.0, 8.0],
        [-(2**53) + 1, -(2**53) + 2, 2**53 - 2, 2**53 - 1],
    ],
)
def test_factors_are_never_merged(tmp_path, kind, codes):
    path = tmp_path / f"f.{kind}"
    frame = pd.DataFrame({"code": codes} | ({"word": list("abcd")} if "mixed" in kind else {}))
    if kind == "npz":
        np.savez(path, frame.to_numpy())
    elif kind == "npy":
        np.save(path, frame.to_numpy())
    else:
        frame.to_csv(path, index=False) if "csv" in kind else frame.to_parquet(path)
    assert read_factors(path).values[:, 0].tolist() == codes


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "mixed.csv"])
@pytest.mark.parametrize("first", [2**53, -(2**53) - 1, 2**60])
def test_factors_that_would_merge_in_float64_are_refused(tmp_path, kind, first):
    path = tmp_path / f"f.{kind}"
    frame = pd.DataFrame({"id": [first, first + 1]} | ({"word": ["a", "b"]} if "m" in kind else {}))
    if kind == "npy":
        np.save(path, frame.to_numpy())
    else:
        frame.to_csv(path, index=False) if "csv" in kind else frame.to_parquet(path)
    assert "as whole numbers merge from there on" in refusal(read_factors, path)


def test_text_beside_such_numbers_changes_nothing(tmp_path):
    frame = pd.DataFrame({"a": [1_000_000.25, 1_000_000.5], "b": ["x", "y"]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        assert read_factors(tmp_path / name).values[:, 0].tolist() == frame["a"].tolist()
