"""Results of other data are not taken for those of the data that are given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import official
from demix import DemixError
from demix.papers import Order, render_folder
from demix.papers.experiments import experiment_named
from demix.papers.runner.job import JobCallback
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named

TABLE, SMOKE, SPRITES = experiment_named("ce-dislib"), scale_named("smoke"), 8


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> list[Path]:
    """Two sets of sprites that differ in their seed."""
    folder = tmp_path_factory.mktemp("sprites")
    return [
        render_folder(Order("sprites", n=240, size=16, seed=seed), folder / str(seed), jobs=1)
        for seed in (0, 1)
    ]


@pytest.fixture(scope="module")
def finished(sets, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("table4")
    reproduce(TABLE, out, rows=[SPRITES], scale=SMOKE, data=sets[:1])
    return out


class Cut(JobCallback):
    """Ctrl-C in the middle of a training."""

    def step(self, job, step, steps, record) -> None:
        if steps > 1 and step == 5:
            raise KeyboardInterrupt


class Counted(JobCallback):
    """Counts the jobs that are run."""

    done = 0

    def finish(self, job, record) -> None:
        self.done += 1


@pytest.mark.parametrize("seed", [0, 7])
def test_records_of_other_data_are_refused_and_stay(sets, finished, tmp_path, seed):
    data = shutil.copytree(sets[0], tmp_path / "data")
    out = shutil.copytree(finished, tmp_path / "out")
    before = (out / "results.json").read_bytes()
    shutil.rmtree(data)
    shutil.copytree(sets[1], data)  # at the same place
    with pytest.raises(DemixError, match=r"row 8 in .*, but they were made from other data; give"):
        reproduce(TABLE, out, rows=[SPRITES], seeds=[seed], scale=SMOKE, data=[data])
    assert (out / "results.json").read_bytes() == before


def test_the_same_data_elsewhere_are_no_other_data(sets, finished, tmp_path):
    moved, counted = shutil.copytree(sets[0], tmp_path / "moved"), Counted()
    reproduce(TABLE, finished, rows=[SPRITES], scale=SMOKE, data=[moved], callback=counted)
    assert counted.done == 0


def test_rows_of_other_data_sets_join(finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "out")
    official.write_coil(tmp_path / "coil.npz", objects=4, angles=60)
    records = reproduce(TABLE, out, scale=SMOKE, data=[tmp_path / "coil.npz"])
    assert {record["row"] for record in records} == {SPRITES, 11}
    assert len({record["provenance"]["data"] for record in records}) == 2


def test_a_record_that_does_not_say_its_data_is_refused(sets, finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "out")
    records = json.loads((out / "results.json").read_text())
    for record in records:
        del record["provenance"]["data"]
    (out / "results.json").write_text(json.dumps(records))
    with pytest.raises(DemixError, match="they were made from other data"):
        reproduce(TABLE, out, rows=[SPRITES], scale=SMOKE, data=sets[:1])


def test_a_checkpoint_of_other_data_is_refused(sets, tmp_path):
    data, out = shutil.copytree(sets[0], tmp_path / "data"), tmp_path / "out"
    settings = {"rows": [SPRITES], "scale": SMOKE, "data": [data]}
    with pytest.raises(KeyboardInterrupt):
        reproduce(TABLE, out, callback=Cut(), **settings)
    assert any((out / "unfinished").rglob("checkpoint.safetensors"))
    # Records that were finished before would be refused first.
    (out / "results.json").write_text("[]")
    shutil.rmtree(data)
    shutil.copytree(sets[1], data)
    with pytest.raises(DemixError, match="is the checkpoint of another training"):
        reproduce(TABLE, out, **settings)


@pytest.mark.filterwarnings("ignore")
def test_scores_of_too_few_images_are_missing_and_the_table_is_written(tmp_path):
    few = render_folder(Order("sprites", n=12, size=16), tmp_path / "few", jobs=1)
    records = reproduce(TABLE, tmp_path / "out", rows=[SPRITES], scale=SMOKE, data=[few])
    assert None in [record["r"] for record in records]
    assert "sprites" in (tmp_path / "out" / "table.md").read_text()
