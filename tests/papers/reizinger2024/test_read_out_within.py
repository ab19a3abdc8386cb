"""Read-outs within blocks: a map for each, scored together."""

from __future__ import annotations

import numpy as np
import pytest

from demix import DemixError
from demix.metrics.blocks import exchangeable
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.readouts import ProbeSplit, read_outs, split_of
from demix.papers.reizinger2024.readouts import Indicators, read_out_within

OPTIONS = {"permutations": 50, "seed": 0}


def turned(objects: int = 12, angles: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features that show the angle of each object from a zero of its own, beside noise."""
    random = np.random.default_rng(0)
    blocks = np.repeat(np.arange(objects), angles)
    angle = np.tile(np.arange(angles) * 360 / angles, objects)
    turn = np.radians(angle) + random.uniform(0, 2 * np.pi, objects)[blocks]
    features = np.column_stack([np.cos(turn), np.sin(turn), random.normal(size=(len(turn), 6))])
    return features, angle, blocks


def test_an_angle_with_a_zero_for_each_object_is_read_out_within_objects_only():
    features, angle, blocks = turned()
    factor, split = Factor("angle", angle, "periodic", 360), split_of(exchangeable(len(angle), 0))
    [across] = read_outs(
        features, [factor], split, permutations=50, sampling=exchangeable(len(features), 0)
    )
    within = read_out_within(features, factor, blocks, split, **OPTIONS)
    assert within.scores["r"].value > 0.98
    assert within.p == 1 / 51
    assert across.scores["r"].value < 0.5
    assert abs(within.chance.value) < 0.1


def test_one_group_is_no_group():
    features, angle, _ = turned(1, 300)
    factor, split = Factor("angle", angle, "periodic", 360), split_of(exchangeable(len(angle), 0))
    [across] = read_outs(
        features, [factor], split, permutations=50, sampling=exchangeable(len(features), 0)
    )
    within = read_out_within(features, factor, np.zeros(len(angle)), split, **OPTIONS)
    assert within.scores == across.scores
    assert within.penalty == across.penalty


def test_groups_with_too_few_rows_are_left_out_and_some_must_stay():
    features, angle, blocks = turned()
    factor, split = Factor("angle", angle, "periodic", 360), split_of(exchangeable(len(angle), 0))
    lonely = np.where(np.arange(len(angle)) == split.test[0], 99, blocks)
    found = read_out_within(features, factor, lonely, split, **OPTIONS)
    assert found.scores["r"].value > 0.98
    with pytest.raises(DemixError, match="needs blocks with 4 rows to fit"):
        read_out_within(features, factor, np.arange(len(angle)), split, **OPTIONS)


def test_categories_can_be_measured_like_numbers():
    random = np.random.default_rng(1)
    shape = random.choice(["ball", "cone", "cube"], size=300)
    told = Indicators("shape", shape, "categorical")
    split = ProbeSplit(*np.split(random.permutation(300), [200, 250]))
    plain = np.column_stack([told.targets @ random.normal(size=(3, 3)), random.normal(size=300)])
    [found] = read_outs(plain, [told], split, permutations=50, sampling=exchangeable(len(plain), 0))
    assert found.scores["r"].value > 0.999
    assert found.scores["r2"].value > 0.999
    [blind] = read_outs(
        plain[:, 3:], [told], split, permutations=50, sampling=exchangeable(len(plain), 0)
    )
    assert abs(blind.scores["r"].value) < 0.3
