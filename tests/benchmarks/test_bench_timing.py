"""Times are taken in turn, and memory is that of the call alone."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

import pytest
from allocation import allocate

from benchmarks.memory import extra_memory
from benchmarks.timing import interleaved, medians, ratios, under
from demix._support.errors import DemixError


@pytest.fixture(autouse=True)
def _find_allocation(monkeypatch):
    """Let the measuring process import the module beside this one."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def test_every_round_goes_through_all_calls_in_turn():
    order = []
    calls = {name: (lambda name=name: order.append(name)) for name in "abc"}
    times = interleaved(calls, rounds=3)
    assert [name for name, _ in groupby(order)] == list("abc" * 4)  # a warm-up goes first
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3, "c": 3}


def test_what_is_measured_is_said_before():
    said = []
    interleaved({"a": lambda: None}, 2, under("title", said.append))
    assert said == ["title: a, warming up", "title: a, round 1 of 2", "title: a, round 2 of 2"]


def test_a_ratio_is_taken_within_each_round():
    times = {"ours": [1.0, 10.0, 1.0], "theirs": [4.0, 40.0, 5.0]}
    assert medians(times) == {"ours": 1.0, "theirs": 5.0}
    assert ratios(times, "ours") == {"theirs": 4.0}


def test_extra_memory_is_that_of_the_call():
    found = extra_memory(allocate, {"mebibytes": 64}, {"mebibytes": 1})
    assert abs(found / 2**20 - 64) < 6.4


def test_a_call_that_fails_is_reported_in_one_sentence():
    with pytest.raises(DemixError, match=r"Measuring the memory of allocate .* failed: TypeError"):
        extra_memory(allocate, {"mebibytes": "many"}, {"mebibytes": 1})
