"""Tables 4 and 5 run on rendered folders, with exact pairs, nearest ones and views."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from demix import DemixError, Encoder
from demix.papers.datasets.rendered import RenderedPairs
from demix.papers.experiments import experiment_named
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.run import Monitor, Run
from demix.papers.runner.scales import scale_named
from demix.papers.scenes.folder import open_rendered, render_folder
from demix.papers.scenes.order import Order
from demix.papers.zimmermann2021 import scenes

pytest.importorskip("embreex", reason="the extra `papers` is not installed")
pytest.importorskip("faiss", reason="the extra `papers` is not installed")

TABLES = experiment_named("clica-3dident")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three hundred scenes with positives that are normal."""
    order = Order("3dident", n=300, size=16, pairs="normal:0.1")
    return render_folder(order, tmp_path_factory.mktemp("scenes") / "normal", jobs=1)


def test_figures_are_those_of_the_paper():
    # Zimmermann et al. (2021), Tables 4 and 5: R² and MCC on the test and training set.
    rows = [
        [row.published("unsupervised", score) for score in TABLES.scores] for row in TABLES.rows
    ]
    assert [[figure and figure[0] for figure in row] for row in rows] == [
        [96.73, 98.31, 97.83, 98.85],
        [96.43, 54.94, 97.72, 55.90],
        [96.87, 98.38, 97.95, 98.94],
        [65.74, 42.44, 66.73, 42.72],
        [45.51, 46.34, None, None],
    ]
    assert TABLES.rows[0].published("supervised", "r2") == (98.67, 0.03)
    assert TABLES.rows[0].published("identity", "r2_train") == (5.35, 0.72)


def test_paper_scale_is_the_papers_training():
    for row in TABLES.rows:
        encoder, objective, recipe = row.plan(
            scale_named("paper"), "unsupervised", (3, 224, 224), drawn=True
        )
        assert isinstance(encoder, Encoder)
        assert encoder.settings["body"] == "resnet18"
        assert (recipe.steps, recipe.batch, recipe.rate) == (200_000, 512, 1e-4)
        assert objective.similarity == row.similarity


def test_a_run_scores_images_held_out_and_trained_on(folder, tmp_path, monkeypatch):
    # After so few steps no axes are independent, and the search for them goes on to its end.
    monkeypatch.setattr("demix.papers.runner.run.EVALUATED", 256)
    records = reproduce(
        TABLES, tmp_path / "new", rows=[1, 3, 5], scale=scale_named("smoke"), data=[folder]
    )
    assert [(r["row"], r["model"]) for r in records] == [
        (1, "identity"),
        (1, "supervised"),
        (1, "unsupervised"),
        (3, "unsupervised"),
        (5, "unsupervised"),
    ]
    # What was not rendered is the nearest there is.
    assert [r.get("pairs") for r in records] == [None, "exact", "exact", "laplace", "augmentations"]
    assert [len(r.get("stages", [])) for r in records] == [0, 0, 0, 2, 0]
    assert [r["steps"] for r in records] == [0, 10, 10, 20, 10]
    for record in records:
        assert all(record[score] <= 1 for score in TABLES.scores)
    table = (tmp_path / "new" / "table.md").read_text(encoding="utf-8")
    assert "R², training images" in table


def test_training_never_sees_the_last_tenth(folder):
    rendered = open_rendered(folder)
    held_out = {row.tobytes() for row in np.asarray(rendered.latents[270:])}
    generator = torch.Generator().manual_seed(0)
    for law in ("normal", "laplace", "augmentations"):
        pairs = RenderedPairs(rendered, law)
        assert pairs.training == 270
        assert pairs.rows("test", 100).tolist() == list(range(270, 300))
        drawn = pairs.sample(400, generator=generator)
        seen = {row.tobytes() for row in drawn.z.numpy()}
        assert len(seen) > 150
        assert not seen & held_out
        assert drawn.x.shape == drawn.x_tilde.shape == (400, 3, 16, 16)
        assert 0 <= drawn.x.min() < drawn.x.max() <= 1


def test_exact_pairs_are_what_the_conditional_drew(folder):
    rendered = open_rendered(folder)
    drawn = RenderedPairs(rendered, "normal").sample(50, generator=torch.Generator().manual_seed(0))
    index = [int(np.flatnonzero((rendered.latents == z).all(1))[0]) for z in drawn.z.numpy()]
    assert np.array_equal(drawn.z_tilde.numpy(), rendered.positive_latents[index])
    shown = (255 * drawn.x_tilde).round().byte().permute(0, 2, 3, 1).numpy()
    assert np.array_equal(shown, rendered.positives[index])


def test_narrow_latents_are_what_positives_have_in_common(folder):
    plain = replace(open_rendered(folder), positives=None, positive_latents=None)
    plain = replace(plain, order=replace(plain.order, pairs=None))
    widths = [0.7] * 3 + [0.05] + [0.7] * 6
    drawn = RenderedPairs(plain, "normal", widths).sample(
        400, generator=torch.Generator().manual_seed(0)
    )
    away = (drawn.z - drawn.z_tilde).abs().mean(dim=0)
    assert away[3] < away[[0, 1, 2, 4, 5, 6, 7, 8, 9]].min() / 2


def test_a_training_of_scenes_takes_all_cores_but_for_a_smoke_run():
    row, pairs = TABLES.rows[0], experiment_named("clica-table1").rows[0]
    scales = [scale_named(name) for name in ("smoke", "laptop", "paper")]
    assert [row.threads(scale) for scale in scales] == [1, None, None]
    assert [pairs.threads(scale) for scale in scales] == [1, 1, None]


def test_a_first_stage_has_outputs_to_spare_and_narrow_rotations():
    row, laptop = TABLES.rows[0], scale_named("laptop")
    (free, _), (bound, _) = row.stages(laptop, "unsupervised")
    for widths in (free, bound):
        assert max(widths[3:6]) < min(widths[:3] + widths[6:])
    encoder, _ = row.free(laptop, (3, 64, 64))
    assert encoder.space.dim > len(free)
    for scale in (laptop, scale_named("smoke")):
        assert len(row.stages(scale, "supervised")) == 1


def test_a_checkpoint_of_other_widths_is_refused(folder, tmp_path, monkeypatch):
    def kill(step, steps, record):
        if step == 5:
            raise RuntimeError("killed")

    rendered, smoke = open_rendered(folder), scale_named("smoke")
    plain = replace(rendered, order=replace(rendered.order, pairs=None))
    monitor = Monitor(kill, tmp_path / "checkpoint.safetensors")
    run = Run(0, smoke, "unsupervised", inputs=[plain], monitor=monitor)
    with pytest.raises(RuntimeError, match="killed"):
        TABLES.rows[0].run(run)
    monkeypatch.setattr(scenes, "_FREE", (0.5, 0.1, 0.2))
    with pytest.raises(DemixError, match="checkpoint of another training"):
        TABLES.rows[0].run(run)


def test_another_scene_is_refused(tmp_path):
    sprites = render_folder(Order("sprites", n=4, size=16), tmp_path / "sprites", jobs=1)
    with pytest.raises(DemixError, match="holds the scene sprites"):
        reproduce(TABLES, tmp_path / "new", scale=scale_named("smoke"), data=[sprites])
    assert not (tmp_path / "new").exists()


def test_each_row_has_the_checksum_of_the_folder_that_it_reads(folder, tmp_path):
    order = Order("3dident", n=20, size=16, pairs="laplace:0.1")
    other = render_folder(order, tmp_path / "laplace", jobs=1)
    inputs = [open_rendered(path) for path in (folder, other)]
    found = {row.positives: row.digest(inputs) for row in TABLES.rows}
    first, second = (rendered.digest for rendered in inputs)
    assert first != second
    assert found == {"normal": first, "laplace": second, "augmentations": first}
