"""Every misuse is refused with a sentence that says what came."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from demix import DemixError, contrast
from demix.papers.zimmermann2021.alignment import alignment, uniformity

Z = torch.rand(4, 3)
SHAPES = [
    (torch.rand(3), torch.rand(3), r"\(3,\) and \(3,\)"),
    (torch.rand(2, 4, 3), Z, r"\(2, 4, 3\) and \(4, 3\)"),
    (Z, torch.rand(4, 2), r"\(4, 3\) and \(4, 2\)"),
    (torch.rand(0, 3), Z, "at least one row"),
    (Z, torch.rand(0, 3), "at least one row"),
]


@pytest.mark.parametrize("loss", [contrast, alignment, uniformity])
@pytest.mark.parametrize(("queries", "keys", "text"), SHAPES)
def test_shapes_that_do_not_fit(loss: Any, queries: Any, keys: Any, text: str) -> None:
    with pytest.raises(DemixError, match=text):
        loss(queries, keys)


@pytest.mark.parametrize("loss", [contrast, alignment, uniformity])
@pytest.mark.parametrize("similarity", ["cosine", 0.5, 0, -1, math.inf, math.nan, True, None, [2]])
def test_unknown_similarities(loss: Any, similarity: Any) -> None:
    with pytest.raises(DemixError, match="similarity must be"):
        loss(Z, Z, similarity=similarity)


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_temperatures_that_are_not_positive(temperature: float, as_tensor: bool) -> None:
    value = torch.tensor(temperature) if as_tensor else temperature
    with pytest.raises(DemixError, match=f"temperature must be .* but got .*{temperature}"):
        contrast(Z, Z, temperature=value)


def test_a_temperature_per_row_or_dimension() -> None:
    with pytest.raises(DemixError, match="temperature must be one"):
        contrast(Z, Z, temperature=torch.ones(3))


@pytest.mark.parametrize(
    ("positives", "text"),
    [
        (torch.tensor([0, 1, 2, 4]), r"0\.\.3, but are 0\.\.4"),
        (torch.tensor([-1, 1, 2, 3]), r"0\.\.3, but are -1\.\.3"),
        (torch.tensor([0, 1, 2]), r"4 whole numbers.*\(3,\)"),
        (torch.zeros(4, 1, dtype=torch.int64), r"4 whole numbers.*\(4, 1\)"),
        (torch.zeros(4), r"4 whole numbers.*float32"),
        (torch.tensor([True, False, True, True]), r"4 whole numbers.*bool"),
    ],
)
def test_positives_that_name_no_key(positives: torch.Tensor, text: str) -> None:
    with pytest.raises(DemixError, match=text):
        contrast(Z, Z, positives=positives)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_positives_of_any_whole_type_are_taken(dtype: torch.dtype) -> None:
    found = contrast(Z, Z, positives=torch.tensor([3, 2, 1, 0], dtype=dtype))
    torch.testing.assert_close(found, contrast(Z, Z.flip(0)))


def test_fewer_keys_than_queries_need_positives() -> None:
    with pytest.raises(DemixError, match=r"4 queries need as many keys, but got 2.*positives"):
        contrast(Z, Z[:2])
    assert contrast(Z, Z[:2], positives=torch.tensor([0, 1, 0, 1])).isfinite()
