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


def test_quadratic_logits_are_those_of_normal_classes():
    """By Bayes' rule, of classes of any mean, covariance and frequency, in any coordinates."""
    random, n = torch.Generator().manual_seed(0), 3
    means, roots = (torch.randn(5, n, *more, generator=random).double() for more in ((), (n,)))
    covariances = roots @ roots.mT + torch.eye(n)
    shares = torch.tensor([0.1, 0.3, 0.2, 0.15, 0.25]).double()
    z = 2 * torch.randn(50, n, generator=random).double()
    labels = torch.arange(50) % 5
    normal = torch.distributions.MultivariateNormal(means, covariances)
    posterior = (normal.log_prob(z[:, None]) + shares.log()).log_softmax(dim=1)
    with pytest.warns(DemixWarning, match="quadratic logits needs .* at least 10 classes"):
        made = Classification(5, n, quadratic=True, bias=True).double()
    precision = torch.linalg.inv(covariances)
    first, second = torch.triu_indices(n, n)
    products = -precision[:, first, second] * torch.where(first == second, 0.5, 1.0)
    linear = (precision @ means[:, :, None])[:, :, 0]
    made.weight.data = torch.cat([linear, products], dim=1)
    made.bias.data = shares.log() - (linear * means).sum(dim=1) / 2 - torch.logdet(covariances) / 2
    torch.testing.assert_close(made.logits(z).log_softmax(dim=1), posterior)
    expected = -posterior[torch.arange(50), labels].mean()
    torch.testing.assert_close(made.loss(z, labels), expected)


def test_quadratic_prototypes_have_no_length_to_keep():
    with pytest.raises(DemixError, match="leave unit_prototypes out"):
        Classification(20, 3, quadratic=True, unit_prototypes=True)


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
