"""Time-contrastive and generalised contrastive learning."""

from __future__ import annotations

import pytest
import torch
from dense_objectives import assert_same, uniform
from torch.nn import functional

from demix import DemixError, GeneralizedContrastive, InstanceDiscrimination, TimeContrastive

FEATURES, LABELS = uniform(0, 40, 4), torch.arange(40) * 7 % 9


def test_time_contrastive_learning_of_the_identity_is_free_diet():
    torch.manual_seed(0)
    segments = TimeContrastive(9, 4, bias=False).double()
    torch.manual_seed(0)
    diet = InstanceDiscrimination(9, 4).double()
    assert torch.equal(segments.loss(FEATURES, LABELS), diet.loss(FEATURES, LABELS))


def test_statistics_are_laid_side_by_side():
    made = TimeContrastive(9, 4, statistics=("square", "absolute")).double()
    made.bias.data = uniform(1, 9)
    maps = torch.cat([FEATURES**2, FEATURES.abs()], dim=1)
    expected = functional.cross_entropy(maps @ made.rows.T + made.bias, LABELS)
    assert_same(made.loss(FEATURES, LABELS).detach(), expected.detach(), 1e-10)


def test_generalised_contrastive_learning_is_logistic_regression():
    made = GeneralizedContrastive(9, 4).double()
    logits = torch.cat([made.log_ratio(FEATURES, LABELS), made.log_ratio(FEATURES, LABELS.roll(1))])
    truth = torch.cat([torch.ones(40), torch.zeros(40)]).double()
    expected = 2 * functional.binary_cross_entropy_with_logits(logits, truth)
    assert_same(made.loss(FEATURES, LABELS).detach(), expected.detach(), 1e-10)


def test_its_log_ratio_has_the_declared_form():
    made = GeneralizedContrastive(9, 4).double()
    made.bias.data = uniform(1, 9)
    every = torch.stack([made.log_ratio(FEATURES, torch.full((40,), u)) for u in range(9)], dim=1)
    differences = every[:, 1:] - every[:, :1]
    rows, bias = made.rows[1:] - made.rows[:1], made.bias[1:] - made.bias[:1]
    assert_same(differences.detach(), (FEATURES @ rows.T + bias).detach(), 1e-10)


def test_what_cannot_be_is_refused():
    with pytest.raises(DemixError, match=r"statistics are some of identity.*got \('cube',\)"):
        TimeContrastive(9, 4, statistics=("cube",))
    with pytest.raises(DemixError, match="at least 2 rows of 1 dimension, but got 1 of 4"):
        GeneralizedContrastive(1, 4)
    with pytest.raises(DemixError, match="at least 2 samples"):
        GeneralizedContrastive(9, 4).double().loss(FEATURES[:1], LABELS[:1])
