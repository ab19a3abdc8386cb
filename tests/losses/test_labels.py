"""Labels that no objective can use are refused in words about labels and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from dense_objectives import uniform

from demix import (
    Classification,
    DemixError,
    DemixWarning,
    GeneralizedContrastive,
    InstanceDiscrimination,
    TimeContrastive,
)
from demix.losses.labels import check_classes

FEATURES, LABELS = uniform(0, 40, 4).float(), torch.arange(40) * 7 % 9

OBJECTIVES = [
    Classification(9, 4),
    Classification(9, 4, bias=True, smoothing=0.1),
    InstanceDiscrimination(9, 4),
    TimeContrastive(9, 4, statistics=("absolute", "square")),
    GeneralizedContrastive(9, 4),
]
every_objective = pytest.mark.parametrize(
    "objective", OBJECTIVES, ids=[type(objective).__name__ for objective in OBJECTIVES]
)


@every_objective
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:-1], r"40 samples need 40 labels, one each, but got labels of shape \(39,\)"),
        (LABELS[:, None], r"40 labels, one each, but got labels of shape \(40, 1\)"),
        (LABELS[:0], r"40 labels, one each, but got labels of shape \(0,\)"),
        (LABELS.double(), r"whole numbers.* but are torch.float64; convert"),
        (LABELS > 3, r"whole numbers.* but are torch.bool; convert"),
        (LABELS.to(torch.complex64), "but are torch.complex64"),
        (LABELS.tolist(), "tensor of 40 whole numbers, one per sample, but got list"),
        (LABELS + 1, r"one of 9 classes, 0\.\.8, but go from 1 to 9; count them from 0"),
        (LABELS - 1, r"one of 9 classes, 0\.\.8, but go from -1 to 7"),
    ],
)
def test_labels_that_do_not_fit_are_refused(objective: Any, labels: Any, words: str) -> None:
    with pytest.raises(DemixError, match=words):
        objective.loss(FEATURES, labels)


@every_objective
@pytest.mark.parametrize("shape", [(40, 3), (40, 5), (40,), (2, 20, 4), (0, 4)])
def test_features_that_do_not_fit_are_refused(objective: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(DemixError, match=r"at least one sample with 4 latents each.*have shape"):
        objective.loss(torch.zeros(shape), LABELS[: shape[0]])


@every_objective
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_any_whole_numbers_serve_as_labels(objective: Any, dtype: torch.dtype) -> None:
    expected = objective.loss(FEATURES, LABELS)
    assert torch.equal(objective.loss(FEATURES, LABELS.to(dtype)), expected)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2, 2, 1, 0, 0],
        np.array([0, 1, 2, 2, 1, 0, 0], dtype=np.uint8),
        torch.tensor([0, 1, 2, 2, 1, 0, 0]),
        torch.tensor([0, 1, 2, 2, 1, 0, 0], dtype=torch.int32),
    ],
    ids=["list", "numpy", "torch", "int32"],
)
def test_good_labels_are_counted(labels: Any) -> None:
    counts = check_classes(labels, 2)
    assert counts.tolist() == [3, 2, 2]
    assert counts.dtype == np.int64
    assert check_classes(labels, 2, classes=5).tolist() == [3, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([], r"at least one sample, but have shape \(0,\)"),
        ([[0, 1], [1, 0]], r"one whole number .* but have shape \(2, 2\)"),
        ([[0, 1], [1]], "one whole number per sample, but .*inhomogeneous"),
        (3, r"but have shape \(\)"),
        (None, r"but have shape \(\)"),
        ([0.0, 1.0], r"whole numbers, but are float64; .*numpy\.unique"),
        (torch.tensor([0, 1], dtype=torch.bfloat16), "whole numbers, but are float64"),
        ([False, True], "whole numbers, but are bool"),
        (["cat", "dog"], r"whole numbers, but are <U3; .*numpy\.unique"),
        ([0, None], "whole numbers, but are object"),
        ([1, 2, 3], r"0\.\.2 without gaps, but 3 different ones go from 1 to 3"),
        ([0, 10**12], r"0\.\.1 without gaps, but 2 different ones go from 0 to 1000000000000"),
        ([-1, 0], r"0\.\.1 without gaps, but 2 different ones go from -1 to 0"),
        ([0, 0, 0], "at least 2 classes to tell apart, but all 3 labels are 0"),
        ([7, 7, 7], "at least 2 classes to tell apart, but all 3 labels are 7"),
    ],
)
def test_labels_of_a_data_set_that_cannot_be_used_are_refused(labels: Any, words: str) -> None:
    with pytest.raises(DemixError, match=words):
        check_classes(labels, 2)


def test_labels_must_lie_within_the_classes_that_there_are() -> None:
    with pytest.raises(DemixError, match=r"one of 2 classes, 0\.\.1, but go from 0 to 2"):
        check_classes([0, 1, 2], 2, classes=2)
    with pytest.raises(DemixError, match=r"one of 3 classes, 0\.\.2, but go from -1 to 1"):
        check_classes([-1, 0, 1], 2, classes=3)
    with pytest.raises(DemixError, match="all 2 labels are 1"):
        check_classes([1, 1], 2, classes=3)
    with pytest.raises(DemixError, match="at least 1 latent, but dim is 0"):
        check_classes([0, 1], 0)


def test_a_class_of_one_sample_cannot_be_held_out() -> None:
    words = "2 of 4 classes have a single sample and cannot be held out, the first of them label 1"
    with pytest.warns(DemixWarning, match=words):
        counts = check_classes([0, 0, 1, 2, 2, 3], 3)
    assert counts.tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("classes", [None, 100])
def test_too_few_classes_leave_latents_unidentified(classes: int | None) -> None:
    # Classes without a sample teach nothing.
    words = (
        r"Theorem 1 of Reizinger et al\. \(2024\) needs an affine generator system, for 4 latents "
        r"at least 5 classes, but there are 4: only a 3-dimensional linear part of the latents can "
        r"be recovered\. Take more classes, or recover at most 3 of the latents\."
    )
    with pytest.warns(DemixWarning, match=words):
        check_classes([0, 1, 2, 3] * 2, 4, classes=classes)
    check_classes([0, 1, 2, 3] * 2, 3, classes=classes)


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_classes([0, 1, 0, 1], 2),
        lambda: Classification(3, 5),
        lambda: TimeContrastive(3, 5),
    ],
)
def test_a_warning_names_the_line_of_the_caller(call: Callable[[], object]) -> None:
    with pytest.warns(DemixWarning) as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]
