"""Masked entries are refused wherever arrays are taken; more latents than columns are warned of."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import torch

from demix import (
    DemixError,
    DemixWarning,
    Recipe,
    affine_r2,
    all_scores,
    checkup_pairs,
    mean_correlation,
    probe,
)
from demix.data.data import as_data
from demix.data.supervision import check_pairs, check_time
from demix.estimators.classification import ClassifierDemixer, InstanceDemixer
from demix.estimators.contrastive import ContrastiveDemixer

X = np.random.default_rng(0).normal(size=(300, 3))
GAP = np.ma.masked_greater(X, 2.5)
LABELS = np.ma.masked_equal(np.arange(300) % 3, 2)
TINY = Recipe(steps=3, batch=64)

TAKEN = {
    "fit pairs": lambda: ContrastiveDemixer(2, recipe=TINY).fit(GAP),
    "fit labels": lambda: ClassifierDemixer(2, recipe=TINY).fit(GAP, np.arange(300) % 3),
    "fit rows": lambda: InstanceDemixer(2, recipe=TINY).fit(GAP),
    "labels": lambda: ClassifierDemixer(2, recipe=TINY).fit(X, LABELS),
    "positives": lambda: ContrastiveDemixer(2, recipe=TINY).fit(X, positives=GAP),
    "pairs": lambda: check_pairs(np.ma.masked_equal([[0, 1], [1, 2]], 2), 3),
    "time": lambda: check_time(np.ma.masked_equal([0.0, 1.0, 2.0], 1.0)),
    "latents": lambda: affine_r2(GAP, X),
    "factors": lambda: mean_correlation(X, GAP),
    "a list of rows": lambda: ContrastiveDemixer(2, recipe=TINY).fit([*GAP]),
    "a tuple of positives": lambda: ContrastiveDemixer(2, recipe=TINY).fit(X, positives=(*GAP,)),
    "a list of labels": lambda: ClassifierDemixer(2, recipe=TINY).fit(X, [*LABELS]),
    "classes": lambda: ClassifierDemixer(2).partial_fit(X, np.arange(300) % 2, classes=LABELS[:3]),
    "a list of latents": lambda: all_scores([*GAP], X),
    "a list of factors": lambda: all_scores(X, [*GAP]),
    "a tuple of features": lambda: probe((*GAP,), X),
    "a column of factors": lambda: probe(X, {"a": [*GAP[:, 0]]}),
    "a list of embeddings": lambda: checkup_pairs(X, [*GAP], space="real"),
    "observations": lambda: checkup_pairs(X, X + 0.1, space="real", x=[*GAP]),
    "embeddings": lambda: checkup_pairs(GAP, X, space="real"),
}


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
@pytest.mark.parametrize("name", TAKEN)
def test_masked_entries_are_refused(name):
    with pytest.raises(DemixError, match=r"without gaps, but \d+ of their entries are masked"):
        TAKEN[name]()


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_new_rows_with_masked_entries_are_refused():
    demixer = ContrastiveDemixer(2, recipe=TINY).fit(X)
    for gap in (GAP, [*GAP], (*GAP,)):
        with pytest.raises(DemixError, match="entries are masked"):
            demixer.transform(gap)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_lists_of_tensors_with_gradients_are_numbers():
    rows = [torch.tensor(row, requires_grad=True) for row in X]
    demixer = ContrastiveDemixer(2, recipe=TINY).fit(rows, positives=rows)
    np.testing.assert_array_equal(demixer.transform(rows), demixer.transform(X))
    assert as_data(rows).shape == X.shape


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[D]", "timedelta64[s]"])
def test_moments_are_no_labels(kind):
    with pytest.raises(DemixError, match="Expected y as text or numbers, but got"):
        ClassifierDemixer(2, recipe=TINY).fit(X, (np.arange(300) % 3).astype(kind))


@pytest.mark.parametrize("classes", [[], ["a"]])
def test_fewer_than_two_classes_are_refused(classes):
    with pytest.raises(DemixError, match="at least 2 classes to tell apart, but got"):
        ClassifierDemixer(2).partial_fit(X, ["a"] * 300, classes=classes)


def test_a_mask_that_hides_nothing_is_no_trouble():
    np.testing.assert_array_equal(affine_r2(np.ma.array(X), X), affine_r2(X, X))


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_more_latents_than_columns_are_warned_of():
    with pytest.warns(
        DemixWarning, match="1000 latents are asked for, but the array has 3 numbers"
    ):
        ContrastiveDemixer(1000, recipe=TINY, encoder={"hidden": (8,)}).fit(X)


@pytest.mark.filterwarnings("ignore:The latents carry")
def test_classes_of_one_sample_are_warned_of():
    labels = np.array(["often", "seldom"])[np.arange(300) % 2]
    labels[:3] = ["once", "twice", "twice"]
    words = "1 of 4 classes have a single sample .* the first of them label once; collect more"
    with pytest.warns(DemixWarning, match=words):
        ClassifierDemixer(2, recipe=TINY).fit(X, labels)


@pytest.mark.parametrize(
    "labels",
    [
        ["1", 1, True] * 100,
        np.array([1, 2.0, True] * 100, dtype=object),
        np.array(["1", 1, 1.0] * 100, dtype=object),
        np.array([b"a", "a", "b"] * 100, dtype=object),
    ],
)
def test_labels_that_differ_in_type_are_refused(labels):
    with pytest.raises(DemixError, match="label type: expected all text or all numbers, but got"):
        ClassifierDemixer(2, recipe=TINY).fit(X, labels)


@pytest.mark.filterwarnings("ignore:The latents carry")
def test_labels_of_another_type_than_the_known_ones_are_refused():
    labels = np.arange(300) % 12
    fit = ClassifierDemixer(2, recipe=TINY).fit(X, labels)
    for other in (labels.astype(str), labels.astype(str).astype(object)):
        with pytest.raises(DemixError, match="of the 12 known classes, but '0' is not one of them"):
            fit.source(X, y=other)


@pytest.mark.parametrize("rows", [None, "x.npy", {"a": X}, {1, 2}, (row for row in X), 3.0])
def test_what_is_no_array_is_refused_in_a_sentence(rows):
    with pytest.raises(DemixError, match=f"Expected an array.* but got {type(rows).__name__}; fil"):
        ContrastiveDemixer(2, recipe=TINY).fit(rows)


def test_a_device_that_is_none_is_refused_in_a_sentence():
    with pytest.raises(DemixError, match="Expected a device that torch can use here"):
        ContrastiveDemixer(2, recipe=TINY, device=None).fit(X)


@pytest.mark.parametrize(
    "column", [["x"] * 300, pandas.date_range("2020", periods=300), np.ones(300) * 1j]
)
def test_columns_of_no_numbers_are_refused_in_a_sentence(column):
    frame = pandas.DataFrame(X).assign(odd=column)
    frame.columns = frame.columns.astype(str)
    with pytest.raises(DemixError, match="columns of real numbers, but column 'odd' of the Data"):
        InstanceDemixer(2, recipe=TINY).fit(frame)
