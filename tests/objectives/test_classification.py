"""Classification is the contrast with its rows, and refuses settings that no loss has."""

from __future__ import annotations

import math
import re

import pytest
import torch
from dense_objectives import uniform

from demix import Classification, DemixError, contrast

pytestmark = pytest.mark.usefixtures("engine")

FEATURES, LABELS = 3 * uniform(0, 40, 4), torch.arange(40) * 7 % 9


def test_it_goes_through_the_same_contrast():
    made = Classification(9, 4).double()
    expected = contrast(FEATURES, made.rows, positives=LABELS)
    torch.testing.assert_close(made.loss(FEATURES, LABELS), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": 0.1, "smoothing": 0.1}, "choose one of them"),
        ({"prior": torch.ones(3)}, r"9 positive frequencies.*got \[1\.0, 1\.0, 1\.0\]"),
        ({"prior": torch.zeros(9)}, "9 positive frequencies"),
        ({"prior": torch.full((9,), torch.nan)}, "9 positive frequencies"),
        ({"prior": torch.full((9,), torch.inf)}, "9 positive frequencies"),
        ({"prior": [1.0] * 9}, "tensor of 9 frequencies, but got list"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(DemixError, match=words):
        Classification(9, 4, **options)


@pytest.mark.parametrize("name", ["noise", "smoothing"])
@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, math.nan, math.inf, "abc", None, [0.1], 1j])
def test_shares_that_are_none_are_refused(name, share):
    said = re.escape(f"{name} must be a number in [0, 1), but got {share!r}.")
    with pytest.raises(DemixError, match=said):
        Classification(9, 4, **{name: share})


def test_one_class_is_refused():
    with pytest.raises(DemixError, match="at least 2 rows of 1 dimension, but got 1 of 4"):
        Classification(1, 4)
