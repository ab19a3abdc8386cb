"""What `torchrun` leaves in the environment, if it is nonsense."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from demix import DemixError, DemixWarning
from demix._support.process_group import group as launch
from demix._support.process_group.group import joined, under_torchrun

GOOD = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def good(monkeypatch):
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)


def test_the_last_rank_is_one_of_several():
    assert under_torchrun()


@pytest.mark.parametrize(
    ("name", "value", "numbers"),
    [
        ("RANK", "5", "0 to 1"),
        ("RANK", "2", "0 to 1"),
        ("RANK", "-1", "0 to 1"),
        ("RANK", "x", "0 to 1"),
        ("RANK", "", "0 to 1"),
        ("RANK", 5000 * "9", "0 to 1"),
        ("WORLD_SIZE", "x", "1 to 2147483647"),
        ("WORLD_SIZE", "0", "1 to 2147483647"),
        ("MASTER_PORT", "x", "1 to 65535"),
        ("MASTER_PORT", "99999", "1 to 65535"),
    ],
)
def test_nonsense_is_refused_before_anybody_waits(monkeypatch, name, value, numbers):
    monkeypatch.setenv(name, value)
    with pytest.raises(DemixError) as told:
        under_torchrun()
    assert str(told.value) == (
        f"Expected a whole number from {numbers} in the environment variable {name}, but it is "
        f"{value!r}; let torchrun set it, or unset it."
    )


def test_ranks_that_cannot_be_joined_are_told_in_a_sentence(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MASTER_ADDR", "")
    with pytest.raises(DemixError, match="Cannot join the other ranks"), joined():
        pass


def test_ranks_that_never_come_are_waited_for_aloud_and_given_up(monkeypatch):
    monkeypatch.setattr(launch, "_SOON", 0.1)
    monkeypatch.setattr(launch, "_LONGEST", 2.0)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MASTER_PORT", "29587")
    with (
        pytest.warns(DemixWarning, match=r"Waiting for the other ranks at 127\.0\.0\.1:29587; "),
        pytest.raises(DemixError, match=r"Cannot join the other ranks \(Timed out"),
        joined(),
    ):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no batch jobs")
def test_threads_of_a_rank_on_the_processor_are_batch_jobs():
    code = """
import os, threading
from demix import DemixError
from demix._support.process_group.group import joined
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
try:
    with joined():
        pass
except DemixError:
    thread = threading.Thread(target=lambda: print(os.sched_getscheduler(0)))
    thread.start(), thread.join()
"""
    place = os.environ | GOOD | {"RANK": "0", "MASTER_ADDR": ""}
    done = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, check=True)
    assert int(done.stdout) == os.SCHED_BATCH
