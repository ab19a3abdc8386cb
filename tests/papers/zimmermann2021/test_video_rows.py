"""Table 3 runs on annotation files, and says what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command import BRIEF_ROWS, MAIN
from demix import DemixError, Encoder, InfoNCE
from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.runner.experiment import InputFiles
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named
from demix.papers.zimmermann2021.videos import SlowVAE

pytest.importorskip("pycocotools", reason="the extra `papers` is not installed")

from films import line, rectangle, write

TABLE = experiment_named("clica-kitti")


@pytest.fixture(scope="module")
def annotations(tmp_path_factory) -> Path:
    """Pedestrians that walk, come nearer and go, at 64 rows of 224 columns."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("mots")
    lines = []
    for track in range(12):
        top, left, size = random.uniform(5, 30), random.uniform(0, 180), random.uniform(12, 25)
        for frame in range(40):
            top, left = top + random.laplace(0, 0.8), left + random.laplace(0, 3)
            size = float(np.clip(size + random.laplace(0, 0.5), 8, 30))
            box = [int(v) for v in (np.clip(top, 0, 50), np.clip(left, 0, 200), size, size * 0.7)]
            lines.append(line(frame, 2000 + track, rectangle((64, 224), *box)))
    write(folder / "0000.txt", lines)
    return folder


def test_every_row_is_that_of_the_paper():
    # Zimmermann et al. (2021), Table 3: mean and standard deviation of 10 seeds, in percent.
    figures = [
        (66.1, 4.5), (77.1, 1.0), (74.1, 4.4), (58.3, 5.4), (59.9, 5.5),
        (79.6, 5.8), (79.4, 1.9), (80.9, 3.8), (60.2, 8.7), (68.4, 6.7),
    ]  # fmt: skip
    assert [row.published(row.main[0], "mcc") for row in TABLE.rows] == figures
    assert [row.delta for row in TABLE.rows] == [1] * 5 + [5] * 5
    models = [row.columns()["model"] for row in TABLE.rows[:5]]
    assert models == ["SlowVAE"] + ["Laplace"] * 2 + ["Normal"] * 2
    assert TABLE.score == "mcc"


def test_paper_scale_is_the_papers_training():
    for row in TABLE.rows:
        encoder, objective, recipe = row.plan(scale_named("paper"), row.main[0])
        assert isinstance(encoder, Encoder)
        assert encoder.settings["body"] == "kitti"
        assert (recipe.steps, recipe.batch, recipe.rate) == (300_000, 32, 1e-4)
        if row.similarity is None:
            assert isinstance(objective, SlowVAE)
            assert (objective.beta, objective.gamma, objective.rate) == (1.0, 10.0, 6.0)
            assert encoder.space.dim == 20
        else:
            assert objective == InfoNCE(row.similarity, two_sided=False)
            assert encoder.space.dim == 10


def test_a_run_leaves_scores_of_every_model(annotations, brief_rows, tmp_path):
    records = reproduce(
        TABLE,
        tmp_path / "table3",
        rows=[1, 2, 10],
        scale=scale_named("smoke"),
        data=[annotations],
    )
    assert [(r["row"], r["model"]) for r in records] == [
        (1, "slowvae"),
        (2, "unsupervised"),
        (10, "unsupervised"),
    ]
    for record in records:
        assert 0 < record["mcc"] < 1
        assert record["frames"] > 100
        paper, _ = TABLE.rows[record["row"] - 1].published(record["model"], "mcc")
        assert record["paper_mean"] == pytest.approx(paper / 100)
    table = (tmp_path / "table3" / "table.md").read_text(encoding="utf-8")
    assert "Laplace" in table
    assert "SlowVAE" in table


def test_what_is_missing_is_said_before_anything_is_written(demix, annotations, tmp_path):
    out = tmp_path / "no"
    told = demix.refusal("reproduce", "clica-kitti", "--scale", "smoke", "--out", out)
    assert "clica-kitti needs --data with MOTS annotations" in told
    told = demix.refusal("reproduce", "clica-kitti", "--data", tmp_path / "none", "--out", out)
    assert str(tmp_path / "none") in told
    told = demix.refusal("reproduce", "clica-table1", "--data", annotations, "--out", out)
    assert "makes its own data" in told
    assert not out.exists()


def test_the_command_runs_a_row(demix, annotations, tmp_path):
    done = demix.run_python(
        BRIEF_ROWS + MAIN, "reproduce", "clica-kitti", "--rows", "8", "--scale", "smoke",
        "--data", annotations, "--out", tmp_path / "t", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [record["row"] for record in json.loads(done.stdout)] == [8]


def test_only_experiments_on_files_ask_for_them():
    needy = {name for name, experiment in EXPERIMENTS.items() if experiment.data}
    assert needy == {"ce-dislib", "ce-imagenetx", "clica-3dident", "clica-kitti"}
    with pytest.raises(DemixError, match="leave --data out"):
        reproduce(experiment_named("ce-diet"), "never", scale=scale_named("smoke"), data=["x"])


def test_other_masks_have_another_checksum(annotations, tmp_path):
    (row, *_), scale = TABLE.rows, scale_named("smoke")
    first = row.digest(row.inputs(TABLE, InputFiles([annotations], scale)))
    lines = (annotations / "0000.txt").read_text().splitlines()
    write(tmp_path / "0000.txt", lines)
    assert row.digest(row.inputs(TABLE, InputFiles([tmp_path], scale))) == first
    write(tmp_path / "0000.txt", lines[:-1])
    assert row.digest(row.inputs(TABLE, InputFiles([tmp_path], scale))) != first
