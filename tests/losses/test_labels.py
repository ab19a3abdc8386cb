"""Labels that no objective can use are refused in words about labels and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from demix import (
    Classification,
    DemixError,
    DemixWarning,
    InstanceDiscrimination,
)
from demix.papers import GeneralizedContrastive, TimeContrastive
from dense_objectives import uniform

FEATURES, LABELS = uniform(0, 40, 4).float(), torch.arange(40) * 7 % 9

OBJECTIVES = [
    Classification(9, 4),
    Classification(9, 4, bias=True, noise=0.1),
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
        (LABELS[:-1], r"40 samples need 40 labels, one each, but got \(39,\)"),
        (LABELS[:, None], r"40 labels, one each, but got \(40, 1\)"),
        (LABELS[:0], r"40 labels, one each, but got \(0,\)"),
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


def test_too_few_classes_leave_latents_unidentified() -> None:
    words = (
        r"Theorem 1 of Reizinger et al\. \(2024\) needs an affine generator system, for 4 latents "
        r"at least 5 classes, but there are 4: only a 3-dimensional linear part of the latents can "
        r"be recovered\. Take more classes, or recover at most 3 of the latents\."
    )
    with pytest.warns(DemixWarning, match=words):
        Classification(4, 4)
    Classification(4, 3)  # warnings are errors here


@pytest.mark.parametrize(
    "call",
    [
        lambda: Classification(3, 5),
        lambda: TimeContrastive(3, 5),
    ],
)
def test_a_warning_names_the_line_of_the_caller(call: Callable[[], object]) -> None:
    with pytest.warns(DemixWarning) as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]
