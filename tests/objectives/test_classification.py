"""Classification over a row table equals the dense cross-entropy, and corrections restore it."""

from __future__ import annotations

import math
import re

import pytest
import torch
from dense_objectives import assert_same, uniform
from torch.nn import functional

from demix import Classification, DemixError, Encoder, InstanceDiscrimination, Real, contrast
from demix.processes import Labelled

pytestmark = pytest.mark.usefixtures("engine")

FEATURES, LABELS = 3 * uniform(0, 40, 4), torch.arange(40) * 7 % 9


def head(**options: object) -> Classification:
    torch.manual_seed(0)
    made = Classification(9, 4, **options).double()
    if made.bias is not None:
        made.bias.data = uniform(5, 9)
    return made


def dense_logits(made: Classification, features: torch.Tensor) -> torch.Tensor:
    logits = features @ made.table().T
    if made.bias is not None:
        logits = logits + made.bias
    return logits if made.log_prior is None else logits + made.log_prior


def assert_equal_with_gradients(made: Classification, dense) -> None:
    features = FEATURES.clone().requires_grad_()
    inputs = [features, *made.parameters()]
    found, expected = made.loss(features, LABELS), dense(dense_logits(made, features))
    assert_same(found.detach(), expected.detach(), 1e-10)
    pairs = zip(
        torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True
    )
    for ours, theirs in pairs:
        assert_same(ours, theirs, 1e-10)


@pytest.mark.parametrize("unit_rows", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("prior", [None, torch.arange(1.0, 10.0)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_it_is_the_dense_cross_entropy(unit_rows, bias, prior, smoothing):
    made = head(unit_rows=unit_rows, bias=bias, prior=prior, smoothing=smoothing)
    assert_equal_with_gradients(
        made, lambda logits: functional.cross_entropy(logits, LABELS, label_smoothing=smoothing)
    )


@pytest.mark.parametrize("noise", [0.1, 0.8])
def test_known_noise_is_corrected_forward(noise):
    def dense(logits: torch.Tensor) -> torch.Tensor:
        seen = (1 - noise) * logits.softmax(dim=1) + noise / 9
        return -seen.gather(1, LABELS[:, None]).log().mean()

    assert_equal_with_gradients(head(noise=noise), dense)


def test_it_goes_through_the_same_contrast():
    made = head()
    expected = contrast(FEATURES, made.rows, positives=LABELS)
    torch.testing.assert_close(made.loss(FEATURES, LABELS), expected)


def test_classes_as_instances_make_diet_the_supervised_loss():
    torch.manual_seed(0)
    diet = InstanceDiscrimination(9, 4).double()
    assert torch.equal(diet.loss(FEATURES, LABELS), head().loss(FEATURES, LABELS))


def test_a_batch_is_encoded_and_gradients_reach_encoder_and_rows():
    encoder, made = Encoder(3, Real(4), hidden=(8,)), Classification(9, 4)
    x = torch.randn(40, 3)
    made(encoder, Labelled(x, x, LABELS, LABELS)).backward()
    assert all(p.grad is not None for p in [*encoder.parameters(), *made.parameters()])


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
