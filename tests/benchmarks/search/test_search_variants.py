"""Every variant can be trained, and what the search found is the package's own laptop plan."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
import torch

from benchmarks.search import measure
from benchmarks.search.measure import cost_ratio, row_of
from benchmarks.search.optimisers import SHAPES
from benchmarks.search.plan import FOUND, baseline
from benchmarks.search.trainer import Trainer
from benchmarks.search.variants import FACTORS, VARIANTS, variant_named
from demix import train
from demix.papers.runner.scales import Scale

TINY = Scale("laptop", dim=3, draws=50)
ROWS = [("clica-table1", 1), ("clica-table1", 2), ("clica-table2", 1), ("clica-table1", 3)]
every_row = pytest.mark.parametrize(("experiment", "number"), ROWS)


@cache
def tiny(experiment: str, number: int):
    row = row_of(experiment, number)
    plan = baseline(row, TINY)
    process = row.process(TINY.dim, seed=100, draws=TINY.draws)
    return small(plan), process


def small(plan):
    body = replace(plan.body, hidden=plan.body.hidden[:2])
    return replace(plan, recipe=replace(plan.recipe, batch=64), body=body)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_changes_weights_and_gives_finite_losses(name):
    """On the first row that it changes."""
    patch = VARIANTS[name].patch
    places = [place for place in ROWS if patch(tiny(*place)[0]) != tiny(*place)[0]]
    plan, process = tiny(*(places or ROWS)[0])
    trainer = Trainer(patch(plan), process, steps=2, seed=100)
    before = torch.nn.utils.parameters_to_vector(trainer.encoder.parameters()).clone()
    assert math.isfinite(trainer.step())
    assert math.isfinite(trainer.step())
    encoder = trainer.finish()
    after = torch.nn.utils.parameters_to_vector(encoder.parameters())
    assert not torch.equal(before.float(), after)
    assert encoder(process.sample(8).x).isfinite().all()


@every_row
def test_what_was_found_is_trained_to_the_bit_as_by_the_package(experiment, number):
    row = row_of(experiment, number)
    _, process = tiny(experiment, number)
    plan = variant_named(FOUND).patch(baseline(row, TINY))
    plan = replace(plan, recipe=replace(plan.recipe, batch=64))
    encoder, objective, recipe = row.plan(TINY, "unsupervised")
    train(encoder, process.sample, objective, replace(recipe, steps=5, batch=64), seed=100)
    trainer = Trainer(plan, process, steps=5, seed=100)
    for _ in range(5):
        trainer.step()
    for ours, theirs in zip(trainer.finish().parameters(), encoder.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_every_variant_but_the_baseline_changes_some_row():
    plans = [tiny(*place)[0] for place in ROWS]
    laptop = [baseline(row_of(*place), Scale("laptop")) for place in ROWS]
    for name, variant in VARIANTS.items():
        changed = any(variant.patch(plan) != plan for plan in [*plans, *laptop])
        assert changed == (name != "baseline"), name


def test_a_combination_applies_both_patches():
    plan, _ = tiny(*ROWS[1])
    both = variant_named("width-32+tanh")
    assert both.factor == FACTORS[-1]
    patched = both.patch(plan)
    assert set(patched.body.hidden) == {32}
    assert patched.body.activation == "tanh"


def test_the_cost_of_growing_batches_is_weighted_by_their_share_of_the_steps(monkeypatch):
    monkeypatch.setattr(measure, "_seconds", lambda trainer, batch: float(batch))
    plan, process = tiny(*ROWS[1])
    assert cost_ratio(plan, plan, process) == 1.0
    assert cost_ratio(VARIANTS["batch-double"].patch(plan), plan, process) == 2.0
    growing = replace(plan, batches=((0.8, 0.5), (1.0, 3.0)))
    assert cost_ratio(growing, plan, process) == pytest.approx(0.8 * 0.5 + 0.2 * 3)


@pytest.mark.parametrize("name", ["polar express", "exact", "quintic"])
def test_orthogonalised_matrices_have_singular_values_near_one(name):
    # Newton-Schulz with the usual coefficients ends between 0.7 and 1.2 by design.
    matrices = torch.randn(3, 12, 30, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(SHAPES[name](matrices, 5))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_averages_of_weights_are_what_they_say():
    plan, process = tiny(*ROWS[1])
    trainer = Trainer(replace(plan, averaging=("tail", 0.5)), process, steps=4, seed=0)
    seen = []
    for _ in range(4):
        trainer.step()
        seen.append(trainer.encoder.log_scale.detach().clone())
    torch.testing.assert_close(trainer.finish().log_scale.detach(), (seen[2] + seen[3]) / 2)
