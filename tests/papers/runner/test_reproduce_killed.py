"""A run that is interrupted, then killed, then let be ends with every job, none run twice."""

from __future__ import annotations

import json
import signal
import time
from types import SimpleNamespace

import pytest


def read(folder):
    path = folder / "results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def stop(demix, command, folder, jobs: int, how: int):
    """Start the command, and send a signal once so many jobs are finished."""
    demix.start(*command)

    def in_the_next_job() -> bool:
        finished = len(read(folder)) >= jobs
        time.sleep(0.1 if finished else 0.02)
        return finished

    demix.send(how, in_the_next_job)
    done = demix.wait()
    return SimpleNamespace(
        code=done.returncode,
        said=done.stdout + done.stderr,
        records=read(folder),
        files={path.name for path in folder.iterdir()},
    )


@pytest.fixture(scope="module")
def stages(demix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed") / "table1"
    command = ["reproduce", "clica-table1", "--rows", "9", "--seeds", "0,1"]
    command += ["--scale", "smoke", "--out", folder]
    interrupted = stop(demix, command, folder, 2, signal.SIGINT)
    killed = stop(demix, command, folder, len(interrupted.records) + 2, signal.SIGKILL)
    done = demix.run(*command)
    return SimpleNamespace(
        interrupted=interrupted, killed=killed, done=done, records=read(folder), folder=folder
    )


def test_an_interrupt_says_that_what_was_finished_is_kept(stages):
    assert stages.interrupted.code == 130
    assert "finished jobs are kept" in stages.interrupted.said
    assert "Traceback" not in stages.interrupted.said


def test_an_interrupt_leaves_tables_of_what_was_finished(stages):
    assert 2 <= len(stages.interrupted.records) < 6
    assert {"results.json", "table.md", "table.html"} <= stages.interrupted.files


def test_a_kill_loses_no_finished_job(stages):
    before, after = stages.interrupted.records, stages.killed.records
    assert stages.killed.code == -signal.SIGKILL
    assert len(before) + 2 <= len(after) < 6
    assert [record for record in after if record in before] == before


def test_the_same_command_finishes_the_rest_and_changes_no_finished_job(stages):
    assert stages.done.returncode == 0, stages.done
    assert f"6 jobs, {len(stages.killed.records)} of them finished" in stages.done.stdout
    found = {(r["seed"], r["model"]) for r in stages.records}
    models = ("identity", "supervised", "unsupervised")
    assert found == {(seed, model) for seed in range(2) for model in models}
    assert len(stages.records) == 6
    before = stages.killed.records
    assert [record for record in stages.records if record in before] == before


def test_in_the_end_there_are_whole_tables(stages):
    markdown = (stages.folder / "table.md").read_text(encoding="utf-8")
    assert "Seeds 0, 1;" in markdown
    assert (stages.folder / "table.html").stat().st_size > 10_000
