"""Masked entries are refused wherever arrays are taken; more latents than columns are warned of."""

from __future__ import annotations

import numpy as np
import pytest

from demix import DemixError, DemixWarning, Recipe, affine_r2, checkup_pairs, mean_correlation
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
    with pytest.raises(DemixError, match="entries are masked"):
        demixer.transform(GAP)


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
