"""Many workers give what one process gives, to the bit, whatever happens to them."""

from __future__ import annotations

import json
import re
import signal
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from multiprocessing import active_children
from pathlib import Path

import dask
import pytest
import torch
from distributed import LocalCluster
from rich.console import Console
from rich.text import Text

from demix import DemixError
from demix._support.provenance import cores
from demix.cli.progress import training_bar
from demix.papers.commands.reproduce import PRELOAD
from demix.papers.commands.table_bars import TableBars
from demix.papers.experiments import experiment_named
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.job import Job, JobCallback, Task, run_task
from demix.papers.runner.original import Distribution
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named
from demix.papers.runner.store import Board
from demix.papers.workers.executors import Workers

TABLE = experiment_named("ce-supervised")
# Rows 1, 5 and 9 have one setting.
SMOKE = scale_named("smoke")
JOBS = {"rows": [1, 5, 8, 9], "scale": SMOKE}
FILES = {"results.json", "table.md", "table.html"}
# Evaluations are so many steps apart at smoke scale.
EVERY = 3


def stripped(record):
    """Return all of a record that a clock has no part in."""
    history = [{k: v for k, v in each.items() if k != "seconds"} for each in record["history"]]
    return record | {"history": history, "seconds": None}


def read(folder):
    records = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return [stripped(record) for record in records]


def files(folder):
    return {path.name for path in folder.iterdir()}


class Diary(JobCallback):
    """Remembers every call."""

    def __init__(self):
        self.steps, self.ran, self.failed = {}, [], []

    def step(self, job, step, steps, record):
        self.steps.setdefault(str(job), []).append(step)

    def finish(self, job, record):
        self.ran.append(str(job))

    def fail(self, job, error):
        self.failed.append(str(job))


class Killer(Diary):
    """Ends all workers as soon as a job is seen to be running."""

    killed: str | None = None

    def step(self, job, step, steps, record):
        super().step(job, step, steps, record)
        if self.killed is None:
            self.killed = str(job)
            for process in active_children():
                process.kill()


class Useless(Executor):
    """Refuses to work."""

    def submit(self, fn, /, *args, **kwargs):
        raise AssertionError("There is nothing to do.")


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps") / "serial"
    reproduce(TABLE, folder, **JOBS)
    return folder


@pytest.fixture(scope="module")
def workers():
    with Workers(2, preload=PRELOAD) as workers:
        yield workers


@pytest.fixture(scope="module")
def killed(workers, tmp_path_factory):
    """A folder that two workers filled, both of which were killed on the way."""
    folder, watcher = tmp_path_factory.mktemp("sweeps") / "killed", Killer()
    reproduce(TABLE, folder, **JOBS, executor=workers, callback=watcher)
    return folder, watcher


def test_killed_workers_change_no_bit_and_leave_nothing_behind(serial, killed):
    folder, watcher = killed
    assert watcher.killed is not None
    assert read(folder) == read(serial)
    assert files(folder) == FILES


def test_a_killed_job_continues_from_its_last_evaluation(killed):
    _, watcher = killed
    steps = watcher.steps[watcher.killed]
    assert max(steps) <= 60
    assert all(later > step - EVERY for step, later in pairwise(steps))


def test_rows_of_one_setting_are_run_once_by_many_workers_too(killed):
    folder, watcher = killed
    assert sorted(watcher.ran) == [f"row {row}, seed 0, supervised" for row in JOBS["rows"]]
    assert set(watcher.steps) <= {"row 1, seed 0, supervised", "row 8, seed 0, supervised"}
    copied = {r["row"]: r.get("same_run_as_row") for r in read(folder)}
    assert copied == {1: None, 5: 1, 8: None, 9: 1}


def test_a_worker_computes_on_its_share_of_the_cores(workers):
    with Workers(1) as worker:
        assert worker.submit(torch.get_num_threads).result() == cores()


def test_a_second_run_asks_nobody(killed):
    folder, _ = killed
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    reproduce(TABLE, folder, **JOBS, executor=Useless())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_command_has_a_dask_cluster_give_the_same_bits(demix, serial, workers, tmp_path):
    """Its worker is forked from the process that ours are, which saves imports."""
    settings = {"distributed.worker.multiprocessing-method": "forkserver"}
    cluster = {"n_workers": 1, "threads_per_worker": 1, "processes": True}
    command = ["reproduce", "ce-supervised", "--rows", "1,8", "--scale", "smoke"]
    out = tmp_path / "out"
    with dask.config.set(settings), LocalCluster(**cluster, dashboard_address=":0") as cluster:
        executor = f"dask:{cluster.scheduler_address}"
        done = demix.run(*command, "--executor", executor, "--out", out)
    assert done.returncode == 0, done
    assert read(out) == [r for r in read(serial) if r["row"] in (1, 8)]
    assert files(out) == FILES


def test_ctrl_c_keeps_what_is_finished_and_ends_what_is_running(
    serial, workers, tmp_path, monkeypatch
):
    class Impatient(Diary):
        def finish(self, job, record):
            super().finish(job, record)
            signal.raise_signal(signal.SIGINT)

    folder = Path("out")
    [*workers.map(abs, 2 * [-1])]  # both are there
    monkeypatch.chdir(tmp_path)  # where workers are not
    with pytest.raises(KeyboardInterrupt):
        reproduce(TABLE, folder, **JOBS, executor=workers, callback=Impatient())
    [kept] = read(folder)
    assert files(folder) >= FILES
    assert not [*folder.glob("unfinished/sweep-*")]
    # Both workers are free again.
    assert [*workers.map(abs, 2 * [-1])] == [1, 1]
    reproduce(TABLE, folder, **JOBS, executor=workers)
    assert kept in read(folder)
    assert read(folder) == read(serial)
    assert files(folder) == FILES


def job(row, seed=0):
    return Job(TABLE, TABLE.rows[row - 1], seed, SMOKE, "supervised")


def task(row, folder, callback):
    folder.mkdir()
    return Task(job(row), data=(), folder=folder, callback=callback, sweep="a test")


def test_jobs_in_threads_of_one_process_take_turns(serial, tmp_path):
    """Torch has one generator and one number of threads for all of them."""
    told = []
    with ThreadPoolExecutor(2) as executor:
        tasks = [task(r, tmp_path / str(r), lambda *_, r=r: told.append(r)) for r in (1, 8)]
        records = [*executor.map(run_task, tasks)]
    assert told in (60 * [1] + 60 * [8], 60 * [8] + 60 * [1])
    assert [*map(stripped, records)] == [r for r in read(serial) if r["row"] in (1, 8)]


def test_an_interrupted_job_continues_to_the_same_bits(serial, tmp_path):
    class Impatient(Diary):
        def step(self, job, step, steps, record):
            super().step(job, step, steps, record)
            if step == 31:
                raise KeyboardInterrupt

    folder, first, second = tmp_path / "out", Impatient(), Diary()
    one = JOBS | {"rows": [1]}
    with pytest.raises(KeyboardInterrupt):
        reproduce(TABLE, folder, **one, callback=first)
    assert files(folder) == {"results.json", "unfinished"}
    reproduce(TABLE, folder, **one, callback=second)
    # How many checkpoints were kept depends on what keeping one costs.
    (steps,) = second.steps.values()
    assert 1 < steps[0] <= 31
    assert steps == [*range(steps[0], 61)]
    assert read(folder) == read(serial)[:1]
    assert files(folder) == FILES


def test_a_checkpoint_of_another_job_is_refused(tmp_path):
    with suppress(KeyboardInterrupt):
        reproduce(TABLE, tmp_path, **JOBS | {"rows": [8]}, callback=Stop())
    kept = tmp_path / "unfinished"
    (kept / "8-0-supervised").rename(kept / "1-0-supervised")
    with pytest.raises(DemixError, match="is the checkpoint of another training; remove it"):
        reproduce(TABLE, tmp_path, **JOBS | {"rows": [1]})


class Stop(JobCallback):
    """Interrupts after the first evaluation."""

    def step(self, job, step, steps, record):
        if step > EVERY:
            raise KeyboardInterrupt


def test_a_job_that_fails_keeps_no_other_from_running(tmp_path):
    good = replace(experiment_named("clica-table1").rows[8], paper={"identity": None})
    bad = replace(good, number=1, space="box", conditional=Distribution("vmf", 1.0))
    table = Experiment("mixed", "One good row", ("r2",), (bad, good), "a test")
    diary, both = Diary(), {"seeds": [0, 1], "scale": SMOKE}
    told = r"^Row 1, seed 0, identity failed: .* sphere.*\. So did 1 more\.$"
    with pytest.raises(DemixError, match=told):
        reproduce(table, tmp_path, **both, callback=diary)
    assert diary.failed == ["row 1, seed 0, identity", "row 1, seed 1, identity"]
    assert diary.ran == ["row 9, seed 0, identity", "row 9, seed 1, identity"]
    assert files(tmp_path) >= FILES


@pytest.mark.parametrize("name", ["dask:", "slurm"])
def test_the_command_refuses_executors_that_there_are_not(demix, tmp_path, name):
    told = demix.refusal("reproduce", "ce-supervised", "--executor", name, "--out", tmp_path)
    assert f"dask:ADDRESS with the address of a scheduler, but got '{name}'" in told


def test_a_worker_that_cannot_see_the_folder_says_so(tmp_path):
    with pytest.raises(DemixError, match=r"is not there on .* a folder that all its workers can"):
        run_task(replace(task(1, tmp_path / "here", print), folder=tmp_path / "elsewhere"))


def test_a_job_that_nobody_waits_for_is_interrupted(tmp_path):
    board = Board(tmp_path / "unfinished", f"{1:032x}")
    note = board.note("1-0-free")
    note(1, 60, {"loss": 0.5})
    assert [*board.read()] == [("1-0-free", 1, 60, {"loss": 0.5})]
    board.close()
    assert not (tmp_path / "unfinished").exists()
    note.written = 0.0
    with pytest.raises(KeyboardInterrupt):
        note(2, 60, {"loss": 0.5})


def test_all_running_jobs_are_shown_at_once():
    console = Console(file=StringIO(), force_terminal=True, width=120, height=20)
    jobs = [job(row, seed) for row in (1, 8) for seed in (0, 1)]
    with training_bar(console) as progress:
        bars = TableBars(progress, "r2")
        bars.plan(jobs, 0)
        for step in (10, 40):
            for each in jobs[1:3]:
                bars.step(each, step, 60, {"loss": 1.25, "score": 87.5})
                bars.bars[str(each)].drawn = 0.0
        bars.finish(jobs[0], {"paper_mean": 0.9, "r2": 0.88, "seconds": 3.0})
    shown = Text.from_ansi(console.file.getvalue()).plain
    last = shown[shown.rindex("row  1  seed 0  supervised") :]
    assert "R² 88.00 (paper 90.00)" in last
    for title in ("row 1, seed 1, supervised", "row 8, seed 0, supervised"):
        assert re.search(rf"{title} \S+ 40/60 loss 1\.250 · R² 87\.50 % \d:\d\d:\d\d", last)
    assert re.search(r"all jobs +\S+ +1/4", last)
