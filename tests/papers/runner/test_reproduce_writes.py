"""A run leaves records, tables and nothing to do for the next run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from functools import cache

import pytest

from demix import DemixWarning, train
from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.job import Job, JobCallback
from demix.papers.runner.original import Distribution
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.run import Monitor
from demix.papers.runner.scales import Scale, scale_named

SMOKE = scale_named("smoke")
# The first row of each, whose optimum is known except in ce-gennorm, and another one or two.
ROWS = {
    "clica-table1": [1, 3],
    "clica-table2": [1, 4],
    "clica-marginal": [1, 2],
    "clica-any": [1, 3],
    "ce-diet": [1, 9],
    "ce-supervised": [1, 11],
    "ce-cluster-vectors": [1, 2],
    "ce-gennorm": [1, 16],
    "ce-batch-clusters-tails": [1, 13, 25],
    "ce-label-noise": [1, 3],
    "genealogy": [1, 2, 3, 4, 5],
}
# Without a density, or without a classifier, there is no optimum to compare with.
KNOWN = {
    "clica-table1": {(1, "unsupervised")},
    "clica-table2": {(1, "unsupervised")},
    "clica-marginal": {(1, "unsupervised"), (1, "any-marginal")},
    "clica-any": set(),
    "ce-diet": {(1, "normalised"), (1, "free")},
    "ce-supervised": {(1, "supervised")},
    "ce-cluster-vectors": {(n, model) for n in (1, 2) for model in ("normalised", "free")},
    "ce-gennorm": set(),
    "ce-batch-clusters-tails": {(1, "free"), (13, "free")},
    "ce-label-noise": {(n, model) for n in (1, 3) for model in ("supervised", "corrected")},
    "genealogy": {(2, "tcl"), (4, "diet"), (5, "supervised")},
}
# Of each kind of row one table is trained for as long as the scale says, the others for less.
WHOLE = ("clica-table1", "ce-supervised")
STEPS = {name: 60 if name in WHOLE else 4 for name in ROWS}
DOCUMENTED = {
    "experiment",
    "row",
    "seed",
    "scale",
    "model",
    "r2",
    "mcc",
    "paper_mean",
    "paper_std",
    "steps",
    "seconds",
    "nats_above_optimum",
}


class Diary(JobCallback):
    """Remembers the calls."""

    def __init__(self):
        self.planned, self.done, self.ran, self.last = 0, 0, [], {}

    def plan(self, jobs, finished):
        self.planned, self.done = len(jobs), finished

    def step(self, job, step, steps, record):
        self.last[job.key] = (step, steps)

    def warn(self, row, warning):
        self.warned = warning

    def finish(self, job, record):
        self.ran.append(job.key)


def read(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def keys(records):
    return [(r["row"], r["seed"], r["model"]) for r in records]


@pytest.fixture(scope="module", autouse=True)
def _scored_in_passing():
    """What is scored during a training is a few samples."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("reizinger2024.labels", "zimmermann2021.pairs"):
            patch.setattr(f"demix.papers.{module}.EVALUATED", 512)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder of two rows for each experiment, run when it is first asked for."""

    @cache
    def folder(name):
        folder = tmp_path_factory.mktemp("runs") / "new" / name
        experiment = experiment_named(name)

        def shorter(encoder, sample, objective, recipe, **more):
            assert recipe.steps == 60  # what the scale says of every row
            return train(encoder, sample, objective, replace(recipe, steps=STEPS[name]), **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("demix.papers.runner.run.train", shorter)
            reproduce(experiment, folder, rows=ROWS[name], scale=SMOKE, callback=Diary())
        return folder

    return folder


# The scope keeps tests of one experiment together, so that few workers run the same one.
every_experiment = pytest.mark.parametrize(
    "name",
    [name for name, experiment in EXPERIMENTS.items() if experiment.data is None],
    scope="module",
)


@every_experiment
def test_records_have_the_documented_keys_and_scores_as_fractions(finished, name):
    records = read(finished(name))
    rows = [experiment_named(name).rows[number - 1] for number in ROWS[name]]
    assert keys(records) == [(row.number, 0, m) for row in rows for m in sorted(row.models)]
    for record in records:
        assert set(record) >= DOCUMENTED
        assert (record["experiment"], record["seed"], record["scale"]) == (name, 0, "smoke")
        assert -0.1 < record["r2"] <= 1
        assert 0 < record["mcc"] <= 1
        assert record["steps"] == (0 if record["model"] == "identity" else STEPS[name])
        assert record["provenance"]["torch"]
        row = rows[ROWS[name].index(record["row"])]
        mean, std = row.published(record["model"], experiment_named(name).score) or (None, None)
        for key, figure in (("paper_mean", mean), ("paper_std", std)):
            assert record[key] == (None if figure is None else pytest.approx(figure / 100))


@every_experiment
def test_the_distance_to_the_optimum_is_told_where_it_is_known(finished, name):
    for record in read(finished(name)):
        known = (record["row"], record["model"]) in KNOWN[name]
        assert (record["nats_above_optimum"] is not None) == known
        if known:
            assert record["nats_above_optimum"] > -0.05


@every_experiment
def test_histories_go_with_the_trained_models(finished, name):
    for record in read(finished(name)):
        if record["model"] != "identity":
            every = max(1, STEPS[name] // 20)
            steps = list(range(every, STEPS[name] + 1, every))
            assert [each["step"] for each in record["history"]] == steps
            assert all(-10 < each["score"] <= 100 for each in record["history"])


@every_experiment
def test_tables_show_percent_beside_the_papers_figures(finished, name):
    experiment = experiment_named(name)
    markdown = (finished(name) / "table.md").read_text(encoding="utf-8")
    page = (finished(name) / "table.html").read_text(encoding="utf-8")
    for record in read(finished(name)):
        ours = f"{100 * record[experiment.score]:.2f}"
        assert f"| {ours} " in markdown
        assert ours in page
        if record["paper_mean"] is not None:
            spread = "" if record["paper_std"] is None else " ± "
            assert f"{ours} ({100 * record['paper_mean']:.2f}{spread}" in markdown
    figure = {"figure.svg", "figure.png"} if experiment.panels else set()
    files = {path.name for path in finished(name).iterdir()}
    assert files == {"results.json", "table.md", "table.html"} | figure
    some = len(ROWS[name]) < len(experiment.rows)
    rows = f"--rows {','.join(map(str, ROWS[name]))} " if some else ""
    assert f"demix reproduce {name} --seeds 0 {rows}--scale smoke" in markdown
    numbers = re.findall(r"^\| (\d+) \|", markdown, flags=re.MULTILINE)
    # A line for each model of a row that is not there to compare with.
    assert numbers == [
        str(r.number) for r in experiment.rows if r.number in ROWS[name] for _ in r.main
    ]


# Figures that are drawn again have the same bytes, too: see test_panels.py.
@pytest.mark.parametrize("name", WHOLE, scope="module")
def test_a_second_run_runs_nothing(finished, name):
    before = {path.name: path.read_bytes() for path in finished(name).iterdir()}
    diary = Diary()
    experiment, rows = experiment_named(name), ROWS[name]
    reproduce(experiment, finished(name), rows=rows, scale=SMOKE, callback=diary)
    assert diary.planned == diary.done == len(json.loads(before["results.json"]))
    assert diary.ran == []
    assert diary.last == {}
    assert {path.name: path.read_bytes() for path in finished(name).iterdir()} == before


@pytest.mark.usefixtures("brief_rows")
def test_new_rows_and_seeds_join_the_finished_keys(finished, tmp_path):
    folder = shutil.copytree(finished("clica-table2"), tmp_path / "copy")
    before, diary = read(folder), Diary()
    experiment = experiment_named("clica-table2")
    returned = reproduce(
        experiment, folder, rows=[4, 9, 4], seeds=[1, 0, 1], scale=SMOKE, callback=diary
    )
    after = read(folder)
    new = [(4, 1, "unsupervised"), (9, 0, "unsupervised"), (9, 1, "unsupervised")]
    assert sorted(diary.ran) == new
    assert set(diary.last.values()) == {(10, 60)}
    assert [record for record in after if keys([record])[0] not in new] == before
    assert keys(after) == sorted({*keys(before), *new})
    assert returned == after
    # Two seeds have a spread, in the table, too.
    scores = [100 * r["mcc"] for r in after if r["row"] == 4]
    spread = abs(scores[0] - scores[1]) / 2**0.5
    assert f"{sum(scores) / 2:.2f} ± {spread:.2f}" in (folder / "table.md").read_text("utf-8")


def test_the_same_seed_gives_the_same_scores(finished, tmp_path):
    [first] = [r for r in read(finished("clica-table1")) if r["row"] == 3]
    [again] = reproduce(experiment_named("clica-table1"), tmp_path, rows=[3], scale=SMOKE)
    different = {key for key in first if first[key] != again[key]}
    assert different <= {"seconds", "history"}
    assert [r["loss"] for r in first["history"]] == [r["loss"] for r in again["history"]]


def test_at_paper_scale_too_the_seed_settles_the_weights_that_training_starts_from():
    small = Scale("paper", dim=2, draws=10, samples=100)
    losses = []

    def first_step(step, steps, record):
        losses.append(record["loss"])
        raise KeyboardInterrupt

    for seed in (0, 0, 1):
        experiment = experiment_named("clica-table1")
        job = Job(experiment, experiment.rows[1], seed, small, "unsupervised")
        assert job.run(monitor=Monitor(first_step)) is None
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.usefixtures("brief_rows")
def test_what_theory_forbids_is_said_before_the_job_starts(tmp_path):
    """Three clusters in three dimensions; at smoke scale no declared row has too few."""
    row = LabelRow(1, dim=3, clusters=3, instances=30, paper={"free": {}, "normalised": {}})
    experiment = Experiment("forbidden", "Too few clusters", ("r2",), (row,), "a test")
    told = []

    class Ear(JobCallback):
        def warn(self, row, warning):
            told.append((row.number, warning))

        def step(self, job, step, steps, record):
            told.append(job.model)

    [free, unit] = reproduce(experiment, tmp_path / "new", scale=SMOKE, callback=Ear())
    assert told[0][0] == 1
    assert "span 2 of 3 dimensions affinely, but Theorem 1 needs" in told[0][1]
    assert told[1] == "free"
    assert [r["theory"]["latents"] for r in (free, unit)] == ["none", "none"]
    assert [r["theory"]["case"] for r in (free, unit)] == ["C4", "C3"]
    # Nothing can be fitted on the two clusters that are left when one is held out.
    assert free["r2_rows"] is None
    assert free["r2_rows_seen"] is not None


@pytest.mark.usefixtures("brief_rows")
def test_without_anyone_watching_the_warning_is_pythons(tmp_path):
    row = LabelRow(1, Distribution("laplace", 1.0), instances=30, paper={"free": {}})
    experiment = Experiment("forbidden", "Laplace", ("r2",), (row,), "a test")
    with pytest.warns(DemixWarning, match=r"Row 1: Laplace\(λ=1\) is not vMF"):
        reproduce(experiment, tmp_path / "new", scale=SMOKE)


@pytest.mark.usefixtures("brief_rows")
def test_rows_of_one_setting_are_run_once(tmp_path):
    """Table 3 prints d = 5, |C| = 100 and kappa = 10 as three rows."""
    experiment, diary = experiment_named("ce-supervised"), Diary()
    first, fifth, eighth, ninth = reproduce(
        experiment, tmp_path / "new", rows=[1, 5, 9, 8], scale=SMOKE, callback=diary
    )
    assert [r["row"] for r in (first, fifth, eighth, ninth)] == [1, 5, 8, 9]
    assert first["r2"] == fifth["r2"] == ninth["r2"] != eighth["r2"]
    assert [r.get("same_run_as_row") for r in (first, fifth, eighth, ninth)] == [None, 1, None, 1]
    assert [r["paper_mean"] for r in (fifth, ninth)] == [0.998, 0.997]
    assert set(diary.last) == {(1, 0, "supervised"), (8, 0, "supervised")}
