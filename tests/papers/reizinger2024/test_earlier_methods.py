"""Time-contrastive and generalised contrastive learning."""

from __future__ import annotations

import pytest
import torch

from demix import DemixError, DemixWarning
from demix.papers import GeneralizedContrastive, TimeContrastive
from dense_objectives import assert_same, uniform

FEATURES, LABELS = uniform(0, 40, 4), torch.arange(40) * 7 % 9


def test_its_log_ratio_has_the_declared_form():
    made = GeneralizedContrastive(9, 4).double()
    made.bias.data = uniform(1, 9)
    every = made.log_ratios(FEATURES, torch.arange(9))
    differences = every[:, 1:] - every[:, :1]
    rows, bias = made.weight[1:] - made.weight[:1], made.bias[1:] - made.bias[:1]
    assert_same(differences.detach(), (FEATURES @ rows.T + bias).detach(), 1e-10)


def test_what_cannot_be_is_refused():
    with pytest.raises(DemixError, match=r"statistics are some of identity.*got \('cube',\)"):
        TimeContrastive(9, 4, statistics=("cube",))
    with pytest.raises(DemixError, match="at least 2 prototypes of 1 dimension, but got 1 of 4"):
        GeneralizedContrastive(1, 4)
    with pytest.raises(DemixError, match="at least 2 samples"):
        GeneralizedContrastive(9, 4).double().loss(FEATURES[:1], LABELS[:1])


def test_too_few_segments_or_values_are_warned_of_in_words_of_their_theorems():
    with pytest.warns(DemixWarning, match=r"Morioka.*10 statistics at least 11 segments.*are 8"):
        TimeContrastive(8, 5, statistics=("identity", "square"))
    with pytest.warns(DemixWarning, match="Turner.*5 latents at least 6 values, but there are 5"):
        GeneralizedContrastive(5, 5)
