"""A score is a float that carries its meaning; any array of numbers can be scored."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from demix import Score, affine_r2, mean_correlation, orthogonal_r2
from demix.metrics.regression import isometry_error
from score_maps import factors

SCORES = [affine_r2, orthogonal_r2, mean_correlation, isometry_error]
every_score = pytest.mark.parametrize("score", SCORES)


@pytest.fixture
def example() -> Score:
    s = factors(0, 2)
    return mean_correlation(s[:, ::-1] + 0.1 * factors(1, 2), s)


@every_score
def test_every_score_says_what_it_means(score: Any) -> None:
    found = score(factors(1, 3) + factors(0, 3), factors(0, 3))
    assert isinstance(found, Score)
    assert isinstance(found.baseline, float)
    assert isinstance(found.per_factor, np.ndarray)
    assert found == pytest.approx(found.per_factor.mean())
    assert len(found.certifies) > 5
    assert len(found.leaves_open) > 5
    assert (found.assignment is not None) == (score is mean_correlation)


@every_score
def test_a_good_representation_beats_its_baseline(score: Any) -> None:
    s = factors(0, 3)
    found = score(2 * s, s)
    better = found < found.baseline if score is isometry_error else found > found.baseline
    assert better
    assert abs(found - found.baseline) > 0.5


def test_it_is_a_float_wherever_one_is_wanted(example: Score) -> None:
    assert isinstance(example, float)
    assert example + 1 == float(example) + 1
    assert 0 < example < 1
    assert f"{example:.3f}" == f"{float(example):.3f}"
    assert round(example, 2) == round(float(example), 2)
    assert json.loads(json.dumps({"score": example})) == {"score": float(example)}
    assert np.mean([example, example]) == float(example)
    assert math.isclose(max(example, 0.0), example)
    assert hash(example) == hash(float(example))
    assert example.assignment.tolist() == [1, 0]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda score: pickle.loads(pickle.dumps(score))]
)
def test_copies_keep_the_meaning(example: Score, again: Any) -> None:
    twin = again(example)
    assert isinstance(twin, Score)
    assert twin == example
    assert twin.baseline == example.baseline
    assert twin.certifies == example.certifies
    assert twin.leaves_open == example.leaves_open
    assert np.array_equal(twin.per_factor, example.per_factor)
    assert np.array_equal(twin.assignment, example.assignment)


@every_score
@pytest.mark.parametrize(
    "convert",
    [
        torch.from_numpy,
        lambda x: torch.from_numpy(x).float().requires_grad_(),
        lambda x: torch.from_numpy(x).bfloat16(),
        lambda x: torch.from_numpy(x).half(),
        lambda x: x.tolist(),
        lambda x: x.astype(np.float32),
        np.asfortranarray,
    ],
    ids=["tensor", "gradient", "bfloat16", "float16", "list", "float32", "fortran"],
)
def test_any_array_of_numbers_is_taken(score: Any, convert: Any) -> None:
    s, z = factors(0, 2), factors(1, 2) + 2 * factors(0, 2)
    expected = score(z, s)
    assert score(convert(z), convert(s)) == pytest.approx(expected, abs=0.01)
    assert score(convert(z), s) == pytest.approx(expected, abs=0.01)


@every_score
@pytest.mark.parametrize("kind", [int, np.int8, np.uint16])
def test_whole_numbers_are_taken(score: Any, kind: Any) -> None:
    steps = np.random.default_rng(0).integers(0, 9, size=(300, 2))
    as_floats = score(steps.astype(float), steps.astype(float))
    assert score(steps.astype(kind), steps.astype(kind)) == as_floats


@every_score
def test_truth_values_are_taken_as_factors(score: Any) -> None:
    steps = np.random.default_rng(0).integers(0, 2, size=(300, 2))
    assert score(steps, steps == 1) == score(steps, steps)


@every_score
def test_scoring_leaves_its_input_alone(score: Any) -> None:
    s, z = factors(0, 2), factors(1, 2)
    before = s.copy(), z.copy()
    score(z, s)
    assert np.array_equal(s, before[0])
    assert np.array_equal(z, before[1])


@every_score
def test_the_same_seed_gives_the_same_score_and_baseline(score: Any) -> None:
    s, z = factors(0, 2), factors(1, 2)
    first, second = score(z, s, seed=5), score(z, s, seed=5)
    assert first == second
    assert first.baseline == second.baseline
    assert score(z, s, seed=6).baseline != first.baseline
