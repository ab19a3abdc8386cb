"""Tables of factors in any form; what cannot be tested is marked, what cannot be meant refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
import pytest
import torch

from demix import DemixError, all_scores, probe, read_factors
from demix.data.factors import KnownFactors

ROWS = 120
_RANDOM = np.random.default_rng(0)
FEATURES = _RANDOM.normal(size=(ROWS, 3))
SIZE = FEATURES[:, 0] + 0.1 * _RANDOM.normal(size=ROWS)
SHAPE = np.where(FEATURES[:, 1] > 0, "cube", "ball")
TABLE = {"size": SIZE, "shape": SHAPE}


def values(found):
    return {one.factor.name: one.read_out.tested for one in found.factors}


def test_forms_of_a_table():
    expected = values(probe(FEATURES, TABLE))
    assert values(probe(FEATURES, pandas.DataFrame(TABLE))) == expected
    assert values(probe(torch.from_numpy(FEATURES), TABLE)) == expected
    objects = np.array(list(zip(SIZE, SHAPE, strict=True)), dtype=object)
    assert values(probe(FEATURES, KnownFactors(objects, ("size", "shape")))) == expected
    assert list(values(probe(FEATURES, objects)).values()) == list(expected.values())
    assert list(values(probe(FEATURES, objects))) == ["factor 1", "factor 2"]


def test_kinds_are_guessed_and_can_be_said():
    whole = np.round(SIZE)
    table = {**TABLE, "level": whole, "many": np.round(50 * SIZE), "truth": SIZE > 0}
    kinds = {one.factor.name: one.factor.kind for one in probe(FEATURES, table).factors}
    assert kinds == {
        "size": "continuous",
        "shape": "binary",
        "level": "categorical",
        "many": "continuous",
        "truth": "binary",
    }
    found = probe(FEATURES, {"level": whole, "size": SIZE}, kinds={"level": "ordinal"})
    assert found["level"].read_out.measure == "r"
    assert found["level"].factor.kind == "ordinal"


def test_factors_that_too_few_rows_tell_of_are_marked():
    few = np.arange(ROWS) < 19
    table = {
        "size": SIZE,
        "same": np.full(ROWS, "x"),
        "rare": few,
        "enough": np.arange(ROWS) < 20,
        "spike": np.where(few, SIZE, 0.0),
        "file": [f"{i}.png" for i in range(ROWS)],
    }
    found = probe(FEATURES, table)
    assert {one.factor.name: one.reason for one in found.factors if one.reason} == {
        "same": "it has one value only",
        "rare": "fewer than 20 rows have its rarer value (19)",
        "spike": "fewer than 20 rows differ from its most frequent value (19)",
        "file": "fewer than two of its values have 20 rows",
    }
    assert found["rare"].bonferroni is None
    # Factors that were not tested do not count.
    assert found["size"].bonferroni == 2 * found["size"].read_out.p
    told = json.loads(json.dumps(found.to_dict()))
    assert told["tested"] == 2
    assert [factor["testable"] for factor in told["factors"]] == [True, False, False, True] + [
        False
    ] * 2
    assert told["factors"][3]["values"] == {"False": 100, "True": 20}
    assert told["rows"] == {"train": 60, "validation": 24, "test": 36}


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (20240101.0 + np.arange(4), ["20240101", "20240102", "20240103", "20240104"]),
        (20240101 + np.arange(4), ["20240101", "20240102", "20240103", "20240104"]),
        (np.array([0.5, 1.0, 2**40, 2**40 + 1]), ["0.5", "1", "1099511627776", "1099511627777"]),
        (np.array(["1", "1.0", "2", "2.0"]), ["1", "1.0", "2", "2.0"]),
    ],
)
def test_every_value_is_listed(levels, words):
    found = probe(FEATURES, {"day": levels[np.arange(ROWS) % 4]}, kinds={"day": "categorical"})
    assert found["day"].to_dict()["values"] == dict.fromkeys(words, ROWS // 4)


@pytest.mark.parametrize("mark", ["NA", "nan", "", "?"])
def test_what_is_missing_is_no_category(tmp_path, mark):
    shape = np.where(np.arange(ROWS) == 7, mark, SHAPE)
    np.save(tmp_path / "f.npy", shape[:, None])
    pandas.DataFrame({"shape": shape, "size": SIZE}).to_parquet(tmp_path / "f.parquet")
    tables = [{"shape": shape}, *(read_factors(tmp_path / f"f.{x}") for x in ("npy", "parquet"))]
    if mark in ("NA", "?"):  # the others are refused when they are read
        pandas.DataFrame({"shape": shape, "size": SIZE}).to_csv(tmp_path / "f.csv", index=False)
        tables.append(read_factors(tmp_path / "f.csv"))
    for table in tables:
        with pytest.raises(
            DemixError, match=rf"that of row 7 .* is missing \('{re.escape(mark)}'\)"
        ):
            probe(FEATURES, table)
    with pytest.raises(DemixError, match="that of row 7 "):
        all_scores(FEATURES, shape[:, None])


def test_values_that_few_rows_have_are_fitted_but_not_scored():
    kinds = np.where(FEATURES[:, 0] > 0, "a", "b")
    kinds[:3] = "c"
    found = probe(FEATURES, {"kind": kinds})["kind"].read_out
    assert found.measure == "balanced_accuracy"
    assert found.tested.value > 0.85
    assert found.chance.value == pytest.approx(0.5, abs=0.05)


def test_features_that_tell_nothing_at_all():
    found = probe(np.ones((ROWS, 2)), TABLE)
    assert [one.read_out.p for one in found.factors] == [1, 1]
    assert found["size"].read_out.tested.value == 0
    assert found["shape"].read_out.tested.value == 0.5


@pytest.mark.parametrize(
    ("features", "table", "options", "words"),
    [
        (FEATURES, TABLE, {"only": ["sise"]}, r"no factor 'sise'; known are size, shape"),
        (FEATURES, TABLE, {"kinds": {"mass": "ordinal"}}, r"no factor 'mass'"),
        (FEATURES, TABLE, {"kinds": {"size": "number"}}, r"one of continuous, .* got 'number'"),
        (
            FEATURES,
            TABLE,
            {"kinds": {"shape": "ordinal"}},
            r"factor 'shape' must be numbers, but is text",
        ),
        (FEATURES, TABLE, {"kinds": {"size": "binary"}}, r"two values, but 'size' has 120"),
        (FEATURES, TABLE, {"kinds": {"size": "periodic"}}, r"period belongs to a periodic factor"),
        (
            FEATURES,
            TABLE,
            {"periods": {"size": -1}},
            r"A period must be a positive number, but .* is -1",
        ),
        (FEATURES, {"x": np.ones(ROWS), **TABLE}, {"only": ["x"]}, r"'x' is 1\.0 in all 120 rows"),
        (FEATURES, {"x": np.ones(ROWS)}, {}, r"none \(x: it has one value only\)"),
        (FEATURES, {}, {}, r"at least one factor, but got none"),
        (FEATURES[:60], {"size": SIZE[:60]}, {}, r"at least 70 rows, but got 60"),
        (FEATURES[:99], TABLE, {}, r"99 rows of features and 120 values of 'size'"),
        (FEATURES * np.nan, TABLE, {}, r"features must be finite"),
        (FEATURES, {"size": np.where(SIZE > 2, np.nan, SIZE)}, {}, r"values of 'size' are NaN"),
        (FEATURES, {"size": SIZE[:, None]}, {}, r"'size' has shape \(120, 1\)"),
        (FEATURES, {"size": np.array([1, "a"] * 60, dtype=object)}, {}, r"'size' is neither"),
        (FEATURES, {"size": (2**53 + np.arange(120)).astype(object)}, {}, r"2\^53 on merge"),
        (FEATURES, [[1, 2], [3]], {}, r"Expected factors as a table"),
        (FEATURES, SIZE, {}, r"must be a table .* shape \(120,\)"),
        (FEATURES, TABLE, {"seed": -1}, r"A seed must be"),
        (FEATURES, TABLE, {"seed": "one"}, r"A seed must be .* but got 'one'"),
        (FEATURES, TABLE, {"only": 3}, r"Expected a list of names, kinds"),
        (FEATURES, TABLE, {"periods": {"size": "360"}}, r"must be a positive .* is '360'"),
        (FEATURES, {"size": 2**60 + np.arange(120)}, {}, r"Whole numbers must lie below 2\^53"),
    ],
)
def test_what_cannot_be_meant_is_refused(features, table, options, words):
    with pytest.raises(DemixError, match=words):
        probe(features, table, **options)


def test_one_factor_that_does_not_vary_where_it_has_to():
    split = (np.arange(60), np.arange(60, 90), np.arange(90, 120))
    with pytest.raises(DemixError, match="rows that score it hold one value"):
        probe(FEATURES, {"early": np.arange(ROWS) < 30}, split=split)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ((range(60), range(60, 90), range(80, 120)), "share no row, but 10 rows are in it twice"),
        ((range(60), [], range(60, 120)), "three parts, but one is empty"),
        ((range(60), range(60, 90), [90.5, 91]), "Expected a split of three arrays of row numbers"),
        (3, "Expected a split of three arrays of row numbers"),
        (("a", "b", "c"), "Expected a split of three arrays of row numbers"),
        ((range(60), range(60, 90), range(90, 121)), r"Rows are 0\.\.119, but .* 0\.\.120"),
    ],
)
def test_parts_that_share_rows_or_have_none(split, words):
    with pytest.raises(DemixError, match=words):
        probe(FEATURES, TABLE, split=split)


def test_an_unknown_name_is_refused_by_what_was_found():
    with pytest.raises(DemixError, match="no factor 'mass'"):
        probe(FEATURES, TABLE)["mass"]
