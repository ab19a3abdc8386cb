"""Every row of every experiment keeps the contract that the runner relies on."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.runner.scales import SCALES

every_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)


@every_experiment
def test_rows_are_of_one_kind_and_numbered_from_one(experiment):
    assert [row.number for row in experiment.rows] == list(range(1, len(experiment.rows) + 1))
    assert {type(row) for row in experiment.rows} == {experiment.kind}


@every_experiment
def test_main_models_are_run_and_columns_are_those_of_the_table(experiment):
    first = list(experiment.rows[0].columns())
    for row in experiment.rows:
        assert set(row.main) <= set(row.models)
        assert list(row.columns()) == first
        assert set(experiment.varying()) <= set(first)


@every_experiment
def test_rows_travel_to_other_processes_and_into_json(experiment):
    for row in experiment.rows:
        again = pickle.loads(pickle.dumps(row))
        assert again == row
        assert again.setting() == row.setting()
        assert json.loads(json.dumps(row.facts())) == row.facts()


@every_experiment
def test_the_setting_leaves_number_and_figures_out(experiment):
    for row in experiment.rows:
        figures = {"paper": {}} if hasattr(row, "paper") else {}
        assert replace(row, number=99, **figures).setting() == row.setting()


@every_experiment
def test_a_figure_is_a_mean_with_or_without_a_spread(experiment):
    for row in experiment.rows:
        for model in row.models:
            for score in experiment.scores:
                mean, spread = row.published(model, score) or (50.0, None)
                assert 0 <= mean < 100
                assert spread is None or 0 <= spread < 10


@every_experiment
def test_a_job_has_one_thread_or_all_of_them(experiment):
    for row in experiment.rows:
        assert {row.threads(scale) for scale in SCALES.values()} <= {1, None}


def test_only_rows_of_one_setting_have_equal_settings():
    rows = experiment_named("ce-supervised").rows
    same = {row.number for row in rows if row.setting() == rows[0].setting()}
    assert same == {1, 5, 9}
