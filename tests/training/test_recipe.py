"""A recipe says how fast each step learns, and refuses what cannot be run."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demix import DemixError, Recipe
from demix.papers.experiments import experiment_named
from demix.papers.runner.original import plain_adam
from demix.papers.runner.scales import scale_named


def factors(**settings) -> list[float]:
    recipe = Recipe(**settings)
    return [recipe.rate_factor(step) for step in range(recipe.steps)]


def test_rates_rise_evenly_over_the_warm_up():
    rise = factors(steps=1000, warmup=0.1)[:100]
    gaps = [later - earlier for earlier, later in pairwise(rise)]
    assert 0 < rise[0] < 0.02
    assert rise[-1] == pytest.approx(1, abs=0.02)
    assert gaps == pytest.approx([gaps[0]] * 99)


def test_rates_fall_to_almost_nothing_along_a_half_cosine():
    after = factors(steps=1000, warmup=0.1)[100:]
    assert after[0] == 1
    assert all(later < earlier for earlier, later in pairwise(after))
    assert after[len(after) // 2] == pytest.approx(0.5)
    assert after[len(after) // 3] == pytest.approx(0.75, abs=0.01)
    assert 0 < after[-1] < 1e-5


def test_rates_stay_at_the_peak_without_decay():
    assert factors(steps=50, warmup=0.0, decay=False) == [1.0] * 50
    assert factors(steps=100, warmup=0.1, decay=False)[10:] == [1.0] * 90


@given(
    steps=st.integers(1, 300),
    warmup=st.floats(0, 1),
    decay=st.booleans(),
)
def test_rates_are_a_share_of_the_peak_that_never_jumps(steps, warmup, decay):
    shares = factors(steps=steps, warmup=warmup, decay=decay)
    assert all(0 < share <= 1 for share in shares)
    slowest_change = 2 / max(1.0, min(warmup * steps, steps - warmup * steps))
    assert all(abs(later - earlier) <= slowest_change for earlier, later in pairwise(shares))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "steps of .* at least 1, but got 0"),
        ({"steps": -3}, "but got -3"),
        ({"batch": 1}, "batch of .* at least 2, but got 1"),
        ({"optimizer": "sgd"}, "'sgd'"),
    ],
)
def test_a_recipe_that_cannot_be_run_is_refused(settings, words):
    with pytest.raises(DemixError, match=words):
        Recipe(**settings)


def test_a_recipe_cannot_be_changed_behind_its_back():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Recipe().steps = 5  # type: ignore[misc]


@pytest.mark.parametrize(("model", "steps"), [("unsupervised", 300_000), ("supervised", 100_000)])
def test_the_papers_recipe_is_plain_adam(model, steps):
    row = experiment_named("clica-table1").rows[0]
    _, _, recipe = row.plan(scale_named("paper"), model)
    assert recipe == plain_adam(steps=steps, batch=6144, rate=1e-4)
    assert recipe.optimizer == "adam"
    assert {recipe.rate_factor(step) for step in (0, 1, steps // 2, steps - 1)} == {1.0}
    assert not any([recipe.whiten, recipe.initialise, recipe.bf16])
