"""Classification is the contrast with its rows, and refuses settings that no loss has."""

from __future__ import annotations

import math
import re

import pytest
import torch

from demix import Classification, DemixError, DemixWarning, contrast
from dense_objectives import uniform

pytestmark = pytest.mark.usefixtures("engine")

FEATURES, LABELS = 3 * uniform(0, 40, 4), torch.arange(40) * 7 % 9


def test_it_goes_through_the_same_contrast():
    made = Classification(9, 4).double()
    expected = contrast(FEATURES, made.weight, positives=LABELS)
    torch.testing.assert_close(made.loss(FEATURES, LABELS), expected)


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, math.nan, math.inf, "abc", None, [0.1], 1j])
def test_noise_that_is_no_share_is_refused(share):
    said = re.escape(f"noise must be a number in [0, 1), but got {share!r}.")
    with pytest.raises(DemixError, match=said):
        Classification(9, 4, noise=share)


def test_one_class_is_refused():
    with pytest.raises(DemixError, match="at least 2 prototypes of 1 dimension, but got 1 of 4"):
        Classification(1, 4)


def test_too_few_classes_are_warned_of_where_the_table_is_made():
    with pytest.warns(DemixWarning, match="Reizinger.*at least 6 classes, but there are 5"):
        Classification(5, 5)
