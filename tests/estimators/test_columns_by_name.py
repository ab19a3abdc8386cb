"""Columns are matched by their names, by every command and estimator, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from demix import (
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    DemixWarning,
    InstanceDemixer,
    Recipe,
    checkup,
    consensus,
    load_model,
    read_data,
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same table with its columns in three orders, with one more, and without names."""
    folder = tmp_path_factory.mktemp("tables")
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 700))
    x = {"a": np.cos(angle), "b": np.sin(angle), "c": 3 * np.cos(2 * angle)}
    x["more"] = angle
    for name, columns in {
        "abc": "a,b,c",
        "cab": "c,a,b",
        "wide": "c,more,b,a",
        "ab": "a,b",
    }.items():
        chosen = np.stack([x[column] for column in columns.split(",")], axis=1)
        np.savetxt(folder / f"{name}.csv", chosen, delimiter=",", header=columns, comments="")
    np.save(folder / "plain.npy", np.stack([x[column] for column in "abc"], axis=1))
    np.savetxt(folder / "y.csv", (angle // 1 % 4).astype(int), fmt="%d")
    return folder


@pytest.fixture(scope="module")
def model(demix, tables):
    """A fit to columns a, b and c."""
    done = demix.run_briefly("fit", tables / "abc.csv", "--n-latents", 2, "--out", tables / "model")
    assert done.returncode == 0, done.stderr
    return tables / "model"


@pytest.mark.parametrize("other", ["cab", "wide"])
def test_transform_goes_by_names(other, demix, tables, model, tmp_path):
    done = demix.run("transform", model, tables / f"{other}.csv", "--out", tmp_path / "z.npy")
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "z.npy")
    np.testing.assert_allclose(found, np.load(model / "latents.npy"), atol=1e-6)


def test_a_table_that_lacks_a_column_is_refused(demix, tables, model, tmp_path):
    told = demix.refusal("transform", model, tables / "ab.csv", "--out", tmp_path / "z.npy")
    assert "Expected one column 'c' in" in told
    assert "but it is not there" in told
    told = demix.refusal(
        "transform",
        model,
        tables / "wide.csv",
        "--columns",
        "a,b,more",
        "--out",
        tmp_path / "z.npy",
    )
    assert "Expected the columns a, b, c that the model was fitted to" in told
    assert "has no column 'c'" in told


def test_an_array_without_names_is_taken_as_it_comes_with_a_warning(demix, tables, model, tmp_path):
    done = demix.run("transform", model, tables / "plain.npy", "--out", tmp_path / "z.npy")
    assert done.returncode == 0, done.stderr
    assert "Columns have names in the model, but not in" in done.stderr
    np.testing.assert_allclose(
        np.load(tmp_path / "z.npy"), np.load(model / "latents.npy"), atol=1e-6
    )


def test_a_checkup_goes_by_names(demix, tables, model, tmp_path):
    import json

    found = []
    for name in ("abc", "cab"):
        out = tmp_path / name
        done = demix.run("checkup", model, tables / f"{name}.csv", "--no-refits", "--out", out)
        assert done.returncode == 0, done.stderr
        checks = json.loads((out / "checkup.json").read_text())["checks"]
        found.append({check["name"]: check["statistic"] or 0.0 for check in checks})
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        assert value == pytest.approx(found[1][name], rel=1e-4, abs=1e-6), name


ESTIMATORS = {
    "pairs": (ContrastiveDemixer, False),
    "labels": (ClassifierDemixer, True),
    "instances": (InstanceDemixer, False),
}


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_fit_stores_names_and_goes_by_them(kind, tables, tmp_path):
    from demix import Recipe

    estimator, labelled = ESTIMATORS[kind]
    y = [np.loadtxt(tables / "y.csv", dtype=int)] if labelled else []
    demixer = estimator(2, recipe=Recipe(steps=5, batch=64))
    demixer.fit(read_data(tables / "abc.csv"), *y)
    assert demixer.feature_names_in_.tolist() == ["a", "b", "c"]
    demixer.save(tmp_path)
    loaded = load_model(tmp_path)
    expected = demixer.transform(read_data(tables / "abc.csv"))
    np.testing.assert_allclose(loaded.transform(read_data(tables / "cab.csv")), expected, atol=1e-6)
    with pytest.raises(DemixError, match="has no column 'c'"):
        loaded.transform(read_data(tables / "ab.csv"))
    with pytest.warns(DemixWarning, match="taken in the order"):
        loaded.transform(read_data(tables / "plain.npy"))


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_checkup_in_python_refits_to_the_same_columns(tables):
    from demix import Recipe

    demixer = ContrastiveDemixer(2, recipe=Recipe(steps=5, batch=64))
    demixer.fit(read_data(tables / "abc.csv"))
    first, second = (
        checkup(demixer, read_data(tables / f"{name}.csv"))["stability"].details["score"]
        for name in ("abc", "cab")
    )
    assert first == pytest.approx(second, abs=1e-3)


def test_a_consensus_goes_by_names(tables):
    abc, cab = (read_data(tables / f"{name}.csv") for name in ("abc", "cab"))
    found = consensus(ContrastiveDemixer(2, recipe=Recipe(steps=20, batch=128)), abc, 2)
    np.testing.assert_allclose(found.transform(cab), found.transform(abc), atol=1e-5)
    np.testing.assert_allclose(found.aligned(cab), found.aligned(abc), atol=1e-5)


def test_columns_that_were_chosen_by_number_are_remembered(tables, tmp_path):
    x = np.loadtxt(tables / "abc.csv", delimiter=",", skiprows=1)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",")
    some = read_data(tmp_path / "x.csv", columns=[2, 0, 1])
    assert some.names == ("2", "0", "1")
    model = ContrastiveDemixer(2, recipe=Recipe(steps=20, batch=128)).fit(some)
    with pytest.warns(DemixWarning, match="Columns have names in the model"):
        model.transform(read_data(tmp_path / "x.csv"))
