"""The first paper's experiments: its rows and figures, and what each scale makes of them."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from demix import DemixError, InfoNCE
from demix.losses.contrast import log_probabilities
from demix.losses.pairs import PotentialInfoNCE
from demix.papers import AlignmentUniformity, AnchorInfoNCE, LogDet
from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.runner.original import LatentMSE
from demix.papers.runner.scales import SCALES, scale_named
from demix.papers.zimmermann2021.alignment import PotentialLimit
from demix.papers.zimmermann2021.pairs import ANY
from demix.spaces.kinds import space_named

CASES = [
    pytest.param(experiment, row, id=f"{experiment.name}-{row.number}")
    for experiment in EXPERIMENTS.values()
    if experiment.name.startswith("clica") and experiment.data is None
    for row in experiment.rows
]
every_row = pytest.mark.parametrize(("experiment", "row"), CASES)
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)

# Zimmermann et al. (2021): mean and standard deviation in percent.
FIGURES = {
    ("clica-table1", 1, "identity"): (66.98, 2.79),
    ("clica-table1", 1, "supervised"): (99.71, 0.05),
    ("clica-table1", 1, "unsupervised"): (99.42, 0.05),
    ("clica-table1", 2, "unsupervised"): (99.86, 0.01),
    ("clica-table1", 5, "identity"): (67.93, 7.40),
    ("clica-table1", 8, "unsupervised"): (99.69, 0.02),
    ("clica-table1", 9, "unsupervised"): (99.02, 0.01),
    ("clica-table1", 11, "unsupervised"): (98.13, 0.14),
    ("clica-table1", 12, "supervised"): (99.61, 0.17),
    ("clica-table2", 1, "identity"): (46.55, 1.34),
    ("clica-table2", 1, "unsupervised"): (98.62, 0.05),
    ("clica-table2", 2, "unsupervised"): (99.90, 0.06),
    ("clica-table2", 6, "supervised"): (99.97, 0.03),
    ("clica-table2", 8, "unsupervised"): (58.26, 3.00),
    ("clica-table2", 9, "unsupervised"): (59.67, 2.33),
    ("clica-table2", 10, "unsupervised"): (43.80, 2.15),
    ("clica-marginal", 7, "unsupervised"): None,
}


@pytest.mark.parametrize(
    ("name", "rows", "score", "cells"),
    [
        ("clica-table1", 12, "r2", 22),
        ("clica-table2", 10, "mcc", 13),
        ("clica-marginal", 7, "r2", 14),
        ("clica-any", 4, "r2", 4),
    ],
)
def test_rows_are_numbered_from_one_and_all_there(name, rows, score, cells):
    experiment = experiment_named(name)
    assert [row.number for row in experiment.rows] == list(range(1, rows + 1))
    assert experiment.score == score
    assert sum(len(row.paper) for row in experiment.rows) == cells


@pytest.mark.parametrize(("cell", "figure"), FIGURES.items(), ids=str)
def test_figures_are_those_of_the_paper(cell, figure):
    name, number, model = cell
    assert experiment_named(name).rows[number - 1].paper[model] == figure


@every_row
def test_every_figure_is_a_percentage_with_a_spread_and_ours_is_always_run(experiment, row):
    assert row.paper.keys() & {"unsupervised", ANY}
    for figure in row.paper.values():
        assert figure is None or (40 < figure[0] < 100 and 0 <= figure[1] < 10)


def test_the_marginal_figure_grows_more_concentrated_row_by_row():
    rows = experiment_named("clica-marginal").rows
    widths = [row.marginal.width for row in rows]
    assert widths == [0, 1, 3, 10, 30, 100, 300]
    assert {str(row.conditional) for row in rows} == {"vMF(κ=10)"}


@every_row
@every_scale
def test_every_row_builds_a_process_of_its_space(experiment, row, scale):
    process = row.process(scale.dim, seed=0, draws=50)
    assert process.space == space_named(row.space, scale.dim)
    pairs = process.sample(20, generator=torch.Generator().manual_seed(0))
    assert process.space.contains(pairs.z).all()
    assert process.space.contains(pairs.z_tilde).all()
    assert pairs.x.shape == (20, scale.dim)


@every_row
@every_scale
def test_every_row_plans_a_model_that_a_loss_can_be_taken_of(experiment, row, scale):
    pairs = row.process(scale.dim, seed=0, draws=50).sample(20)
    for model in set(row.paper) - {"identity"}:
        encoder, objective, recipe = row.plan(scale, model)
        assert encoder.space == space_named(row.model_space, scale.dim)
        assert objective(encoder, pairs).isfinite()
        assert recipe.batch > 20


@every_row
def test_a_matched_row_assumes_what_its_process_does(experiment, row):
    process = row.process(3, seed=0, draws=50)
    implied = process.conditional.similarity
    if row.matched:
        assert row.model_space == row.space
        assert row.marginal.kind == "uniform"
        assert implied.exact
        assert row.similarity == implied.kind
    # On a sphere every row assumes vMF, elsewhere a distance.
    assert (row.similarity == "dot") == (row.model_space == "sphere")
    names = {"dot": "vMF", 1: "Laplace", 2: "Normal", 3: "GenNorm(β=3)"}
    assert row.columns()["model"].endswith(f": {names[row.similarity]}")


@every_row
def test_the_objective_compares_by_the_rows_similarity(experiment, row):
    for scale, model in product(SCALES.values(), row.paper):
        if model == "identity":
            continue
        _, objective, _ = row.plan(scale, model)
        if model == "supervised":
            assert objective == LatentMSE()
        elif model == ANY:
            assert type(objective) is (PotentialLimit if row.narrow else PotentialInfoNCE)
            assert objective.similarity == row.similarity
        elif scale.name == "paper":
            assert objective == AnchorInfoNCE(row.similarity, itself=True)
        else:
            narrow = AlignmentUniformity if row.model_space == "sphere" else LogDet
            assert isinstance(objective, narrow if row.narrow else InfoNCE)
            assert objective.similarity == row.similarity


@every_row
def test_narrow_pairs_are_told_apart_almost_surely(experiment, row):
    """Of their true latents InfoNCE is zero: the rule by which a row has another objective."""
    process = row.process(10, seed=0, draws=50)
    pairs = process.sample(1024, generator=torch.Generator().manual_seed(0))
    sides = pairs.z.double(), pairs.z_tilde.double()
    left = min(
        -float(log_probabilities(*(c * side for side in sides), row.similarity).diagonal().mean())
        for c in (1, 3, 5, 8, 12, 20, 30, 60)
    )
    # With Laplace noise, and L1 for it, the limit would collapse dimensions.
    laplace = row.conditional.kind == "laplace" and row.similarity == 1
    assert row.narrow == (left < 0.05 and not laplace)


@every_row
def test_paper_scale_is_the_papers(experiment, row):
    scale = scale_named("paper")
    assert (scale.dim, scale.draws) == (10, 25_000)
    for model in set(row.paper) - {"identity"}:
        encoder, _, recipe = row.plan(scale, model)
        layers = list(encoder.body)
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        assert [layer.out_features for layer in linear] == [100, 500, 500, 500, 500, 100, 10]
        units = [layer for layer in layers if not isinstance(layer, nn.Linear)]
        assert {type(unit) for unit in units} == {nn.LeakyReLU}
        assert {unit.negative_slope for unit in units} == {0.01}
        assert (recipe.optimizer, recipe.rate, recipe.batch) == ("adam", 1e-4, 6144)
        assert recipe.steps == (100_000 if model == "supervised" else 300_000)
        assert recipe.rate_factor(0) == recipe.rate_factor(recipe.steps - 1) == 1


@every_row
def test_laptop_scale_differs_from_the_papers_only_in_training(experiment, row):
    laptop, paper = scale_named("laptop"), scale_named("paper")
    assert (laptop.dim, laptop.draws, laptop.samples) == (paper.dim, paper.draws, paper.samples)
    assert row.plan(laptop, "unsupervised")[2].steps < 10_000


def test_each_seed_has_its_own_mixing():
    row = experiment_named("clica-table1").rows[0]
    first, again, other = (
        row.process(3, seed=seed, draws=50).mixing.matrices for seed in (0, 0, 1)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("lookup", "words"),
    [(experiment_named, "clica-table1, clica-table2"), (scale_named, "smoke, laptop, paper")],
)
def test_an_unknown_name_is_refused_with_the_known_ones(lookup, words):
    with pytest.raises(DemixError, match=f"'nope'; known are {words}"):
        lookup("nope")
