"""The second paper's experiments: its rows and figures, and what each scale makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from demix import Classification, InfoNCE, Real, Sphere
from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.runner.scales import SCALES, scale_named

TABLES = {
    name: [row for row in experiment.rows if isinstance(row, LabelRow)]
    for name, experiment in EXPERIMENTS.items()
}
every_table = pytest.mark.parametrize("name", [name for name, rows in TABLES.items() if rows])
# Fewer draws of the mixing change nothing that is tested here.
SMOKE, LAPTOP, PAPER = (
    replace(scale_named(name), draws=10) for name in ("smoke", "laptop", "paper")
)

# Reizinger et al. (2024): percent.
FIGURES = {
    ("ce-diet", 1, "normalised", "r2"): 98.6,
    ("ce-diet", 2, "free", "r2"): 99.7,
    ("ce-diet", 4, "normalised", "r2_rows_seen"): 97.1,
    ("ce-diet", 4, "free", "r2"): 81.9,
    ("ce-diet", 5, "free", "r2_rows_seen"): 99.0,
    ("ce-diet", 6, "free", "r2_rows"): 99.9,
    ("ce-diet", 8, "normalised", "singular_mae"): 0.3,
    ("ce-diet", 8, "free", "r2"): 72.5,
    ("ce-diet", 9, "normalised", "r2"): 85.2,
    ("ce-diet", 10, "free", "r2_rows_seen"): 99.6,
    ("ce-supervised", 2, "supervised", "r2"): 97.2,
    ("ce-supervised", 3, "supervised", "r2"): 82.1,
    ("ce-supervised", 4, "supervised", "r2"): 97.5,
    ("ce-supervised", 7, "supervised", "r2"): 99.8,
    ("ce-supervised", 10, "supervised", "r2"): 65.5,
    ("ce-supervised", 12, "supervised", "r2"): 99.6,
    ("ce-cluster-vectors", 2, "free", "r2_rows_seen"): 99.8,
    ("ce-cluster-vectors", 3, "normalised", "r2"): 98.2,
}


@pytest.mark.parametrize(("cell", "figure"), FIGURES.items(), ids=str)
def test_figures_are_those_of_the_paper(cell, figure):
    name, number, model, score = cell
    assert experiment_named(name).rows[number - 1].published(model, score) == (figure, None)


def test_the_supervised_rows_are_in_the_papers_order():
    rows = experiment_named("ce-supervised").rows
    assert [row.dim for row in rows[:3]] == [5, 10, 20]
    assert [row.clusters for row in rows[3:7]] == [10, 100, 1000, 10_000]
    assert [row.conditional.width for row in rows[7:10]] == [5, 10, 50]
    assert [row.conditional.kind for row in rows[10:]] == ["laplace", "normal"]


@every_table
def test_every_row_is_the_papers_process_at_laptop_scale(name):
    for row in TABLES[name]:
        for model in row.models:
            process = row.process(LAPTOP, model, seed=0)
            assert process.space == Sphere(row.dim)
            assert len(process.mixing.matrices) == 4
            assert process.vectors.shape == (row.clusters, row.dim)
            instances = model in ("free", "normalised", "diet")
            assert len(process.prior) == (row.instances if instances else row.clusters)
            batch = process.sample(20, generator=torch.Generator().manual_seed(0))
            assert process.space.contains(batch.z).all()


@every_table
def test_every_row_plans_a_model_that_a_loss_can_be_taken_of(name):
    for row in TABLES[name]:
        for model in row.models:
            process = row.process(SMOKE, model, seed=0)
            sample = (process.sample_pairs if model == "infonce" else process.sample)(20)
            for scale in SCALES.values():
                encoder, objective, recipe = row.at(SMOKE).plan(scale, model)
                assert objective(encoder, sample).isfinite()
                assert encoder.space == (Sphere if model == "infonce" else Real)(row.at(SMOKE).dim)
                assert recipe.batch > 20


@every_table
def test_the_rows_are_as_many_as_labels_and_unit_where_they_should(name):
    for row in TABLES[name]:
        for model in row.models:
            _, objective, _ = row.plan(LAPTOP, model)
            if model == "infonce":
                assert objective == InfoNCE()
                continue
            labels = len(row.process(LAPTOP, model, seed=0).prior)
            assert objective.weight.shape == (labels, row.dim)
            if isinstance(objective, Classification):
                assert objective.unit_prototypes == (model == "normalised")
                assert objective.noise == (row.label_noise if model == "corrected" else 0)


@every_table
def test_paper_scale_is_the_papers(name):
    for row in TABLES[name]:
        for model in row.models:
            encoder, objective, recipe = row.plan(PAPER, model)
            linear = [layer for layer in encoder.body if isinstance(layer, nn.Linear)]
            d = row.dim
            assert [layer.out_features for layer in linear] == [10 * d, *4 * [50 * d], 10 * d, d]
            assert sum(isinstance(layer, nn.BatchNorm1d) for layer in encoder.body) == 6
            batch = row.batch or 1024
            assert (recipe.optimizer, recipe.rate, recipe.batch) == ("adam", 1e-3, batch)
            assert recipe.steps == 50_000 * max(1, row.instances // batch)
            assert getattr(objective, "sampled", None) is None


def test_theory_warns_where_it_forbids_and_only_there():
    few, other = set(), set()
    for experiment in EXPERIMENTS.values():
        for row in experiment.rows:
            for words in row.warnings(LAPTOP, 0):
                cell = (experiment.name, row.number)
                (few if "span" in words else other).add(cell)
                assert ("span" in words) == (row.clusters <= row.dim)
    name = "ce-batch-clusters-tails"
    assert few == {(name, row.number) for row in experiment_named(name).rows[16:21:4]}
    assert [(r.dim, r.clusters) for r in experiment_named(name).rows[16:21:4]] == [
        (10, 10),
        (20, 10),
    ]
    # The rest: noise that is not vMF, labels that are random, and pairs of one class.
    assert {cell for cell in other if cell[0] == "ce-diet"} == {("ce-diet", 9), ("ce-diet", 10)}
    assert {cell for cell in other if cell[0] == "genealogy"} == {("genealogy", 3)}
    assert {n for name, n in other if name == "ce-label-noise"} == set(range(2, 8))
    assert {n for name, n in other if name == "ce-gennorm"} == set(range(1, 21))


def test_theory_knows_what_a_model_corrects():
    row = experiment_named("ce-label-noise").rows[3]
    assert row.theory(LAPTOP, "corrected", seed=0).name == "linear"
    plain = row.theory(LAPTOP, "supervised", seed=0)
    assert plain.name == "none"
    assert "60% of the labels are random" in plain.reasons[0]


def test_each_seed_has_its_own_vectors_and_all_models_of_a_row_share_them():
    row = experiment_named("ce-diet").rows[0]
    one, same, other = (
        row.process(SMOKE, model, seed=seed).vectors
        for model, seed in (("free", 0), ("normalised", 0), ("free", 1))
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@every_table
def test_every_point_has_a_panel_and_every_panel_points(name):
    used = {point.panel for row in TABLES[name] for point in row.points}
    assert used == {panel.title for panel in EXPERIMENTS[name].panels}
