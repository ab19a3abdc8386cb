"""Whatever cannot be scored is refused with a sentence that says what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from demix import DemixError, affine_r2, all_scores, mean_correlation, orthogonal_r2
from demix.metrics.dci import dci
from demix.metrics.information import infomec, modularity
from demix.metrics.readout import beta_vae_score, explicitness, separated_predictability
from demix.metrics.regression import isometry_error
from score_maps import factors

GOOD = factors(0, 2, 50)
SCORES = [affine_r2, orthogonal_r2, mean_correlation, isometry_error]
every_score = pytest.mark.parametrize("score", SCORES)


def with_entry(value: float) -> np.ndarray:
    spoilt = GOOD.copy()
    spoilt[[3, 7], 1] = value
    return spoilt


BAD = {
    "nan": (with_entry(np.nan), "must be finite, but 2 of its 50 rows"),
    "inf": (with_entry(np.inf), "must be finite, but 2 of its 50 rows"),
    "minus inf": (torch.from_numpy(with_entry(-np.inf)), "must be finite, but 2 of its 50 rows"),
    "ids that float64 merges": (
        2**53 + np.arange(100).reshape(50, 2),
        r"must lie below 9\.0072e\+15",
    ),
    "number": (3.0, r"must be a matrix .*shape \(\)"),
    "rank 1": (GOOD[:, 0], r"must be a matrix .*shape \(50,\).*\[:, None\]"),
    "rank 3": (GOOD[:, :, None], r"must be a matrix .*shape \(50, 2, 1\)"),
    "text": ([["a", "b"]] * 50, "must be an array of numbers, but got <U1"),
    "number as text": ([["1", "2"]] * 50, "must be an array of numbers, but got <U1"),
    "complex": (GOOD + 1j, "must be an array of numbers, but got complex128"),
    "complex tensor": (torch.from_numpy(GOOD + 1j), "must be an array of numbers.*complex"),
    "dates": (
        np.full((50, 2), np.datetime64("2021-01-01")),
        "must be an array of numbers, but got datetime",
    ),
    "nothing": (None, "must be an array of numbers, but got object"),
    "a dictionary": ({"z": 1}, "must be an array of numbers, but got object"),
    "ragged": ([[1.0, 2.0], [3.0]], "must be an array of numbers"),
    "empty list": ([], r"must be a matrix .*shape \(0,\)"),
}


@every_score
@pytest.mark.parametrize(("bad", "text"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("side", ["latents", "factors"])
def test_what_is_no_matrix_of_finite_numbers(score: Any, bad: Any, text: str, side: str) -> None:
    arguments = (bad, GOOD) if side == "latents" else (GOOD, bad)
    with pytest.raises(DemixError, match=f"{side} {text}"):
        score(*arguments)


OF_BOTH_KINDS = [dci, modularity, explicitness, infomec, beta_vae_score, separated_predictability]


@pytest.mark.parametrize("score", OF_BOTH_KINDS)
@pytest.mark.parametrize(("bad", "text"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("side", ["latents", "factors"])
def test_scores_of_categories_refuse_the_same_but_text(
    score: Any, bad: Any, text: str, side: str
) -> None:
    if side == "factors" and "<U" in text:
        text = r".* is constant"
        side = "column 0, 1 of factors"
    arguments = (bad, GOOD) if side == "latents" else (GOOD, bad)
    with pytest.raises(DemixError, match=f"{side} {text}"):
        score(*arguments)


@every_score
def test_rows_that_do_not_belong_together(score: Any) -> None:
    with pytest.raises(DemixError, match="one row per sample, but have 49 and 50 rows"):
        score(GOOD[:49], GOOD)


@every_score
def test_too_few_rows_to_hold_half_of_them_out(score: Any) -> None:
    with pytest.raises(DemixError, match=r"2 latents .*needs at least 8 rows, but got 7"):
        score(GOOD[:7], GOOD[:7])
    with pytest.raises(DemixError, match="but got 0"):
        score(GOOD[:0], GOOD[:0])
    assert np.isfinite(score(GOOD[:8], GOOD[:8])).all()


@every_score
def test_no_columns(score: Any) -> None:
    with pytest.raises(DemixError, match="need columns, but have 0 and 2"):
        score(GOOD[:, :0], GOOD)
    with pytest.raises(DemixError, match="need columns, but have 2 and 0"):
        score(GOOD, GOOD[:, :0])


@every_score
def test_factors_that_do_not_vary(score: Any) -> None:
    still = GOOD.copy()
    still[:, 1] = 0.1
    with pytest.raises(DemixError, match=r"column 1 of factors \(counted from 0\) is constant"):
        score(GOOD, still)
    with pytest.raises(DemixError, match="column 0, 1 of factors"):
        score(GOOD, np.ones_like(GOOD))


@every_score
def test_the_messages_are_sentences(score: Any) -> None:
    for bad, _ in BAD.values():
        with pytest.raises(DemixError) as caught:
            score(bad, GOOD)
        message = str(caught.value)
        assert message.endswith(".")
        assert "but" in message


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"categorical": "a"}, "categorical must list columns 0..1 of factors, but holds a"),
        ({"categorical": 0}, "categorical must list columns"),
        ({"categorical": [1.0]}, "categorical must list columns"),
        ({"categorical": [True]}, "categorical must list columns"),
        ({"only": 3}, "Scores are .*, but got 3"),
        ({"only": [0, None]}, "Scores are .*, but got"),
        ({"seed": None}, "A seed must be a whole number .* got None"),
        ({"seed": [1]}, r"A seed must be a whole number .* got \[1\]"),
        ({"blocks": ["1", 1] * 25}, "Unknown block type: expected all text or all numbers, .* 1;"),
        ({"blocks": np.array([1, True] * 25, dtype=object)}, "Unknown block type: expected"),
        ({"blocks": ["a", "NA"] * 25}, "a block for each row, but that of row 1"),
        ({"blocks": [(1, 2), 1] * 25}, "Expected a block for each row .*; give numbers"),
    ],
)
def test_options_of_wrong_types_are_refused_in_a_sentence(options: Any, text: str) -> None:
    with pytest.raises(DemixError, match=text):
        all_scores(GOOD, GOOD, **options)
