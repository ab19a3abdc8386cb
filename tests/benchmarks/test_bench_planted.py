"""Modules that somebody has put into the current folder are not run by processes that measure."""

from __future__ import annotations

import time

import pytest

from benchmarks import estimators, sweeps
from benchmarks.memory import extra_memory
from benchmarks.rank_pool import Pool
from benchmarks.sizes import QUICK
from demix._support.errors import DemixError


@pytest.fixture(autouse=True)
def sprung(tmp_path, monkeypatch):
    """Go to a folder of traps; return the file that they leave."""
    place, here, end = tmp_path / "sprung", tmp_path / "here", tmp_path / "end"
    here.mkdir()
    for name in ("struct", "numpy"):
        trap = f"import os\nopen({str(place)!r}, 'a').close()\nos._exit(66)\n"
        (here / f"{name}.py").write_text(trap)
    # A process that found no trap need not do all its work.
    end.mkdir()
    (end / "numpy.py").write_text("raise ImportError('far enough')\n")
    monkeypatch.chdir(here)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(end))
    return place


@pytest.mark.parametrize(
    "begin",
    [
        lambda: extra_memory(estimators.fit_one, {}, {}),
        lambda: estimators._run("walk on a sphere", estimators.OURS, 0, 300, 20, None),
        lambda: sweeps._command(0, QUICK),
    ],
    ids=["memory", "estimators", "sweeps"],
)
def test_a_module_that_is_run_finds_none_of_them(begin, sprung):
    with pytest.raises(DemixError, match="far enough"):
        begin()
    assert not sprung.exists()


def test_ranks_find_none_of_them(sprung):
    with Pool(1):
        time.sleep(0.5)  # to find a trap takes less
    assert not sprung.exists()
