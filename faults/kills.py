"""Kills at random moments: the same command goes on, and ends with the same bits."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.bench import Bench
from faults.outcome import Outcome
from faults.processes import KILLED
from faults.work import Work

KILL = "kill -9 at a random moment"
# After so many kills a command is let be, so that each series sees some ends.
_TRIES = 12


def kill(work: Work, kills: int, bench: Bench) -> Outcome:
    """Kill a command so many times, each time at a random moment, and let it be in the end.

    Half of the moments are uniform over the time that the command takes. The other half lie just
    after some file was written: there a kill has most to break.
    """
    outcome = Outcome(KILL, work.name)
    expected = bench.undisturbed(work)
    while outcome.tried < kills:
        with bench.folder() as folder:
            _one_life(work, kills, bench, outcome, folder)
            same = _result(work, work.place(folder)) == expected
            outcome.expect(same, f"{work.name} ended with other bits")
    return outcome


def _one_life(work: Work, kills: int, bench: Bench, outcome: Outcome, folder: Path) -> None:
    """Run a command again and again until it ends by itself."""
    place = work.place(folder)
    before: dict[Any, Any] = {}
    for number in range(_TRIES + 1):
        let_be = outcome.tried >= kills or number == _TRIES
        moment = _never if let_be else _moment(bench.chance, bench.seconds[work.name], place)
        done = bench.processes.killed(moment, *work.command(folder))
        if done.returncode != KILLED:
            outcome.expect(done.returncode == 0, f"{work.name}: {done.stderr.strip()[-300:]}")
            return
        outcome.tried += 1
        now = work.finished(place)
        outcome.lost += sum(name not in now for name in before)
        changed = [name for name in before if name in now and now[name] != before[name]]
        outcome.expect(not changed, f"{work.name} changed what was finished: {changed}")
        before = now


def _result(work: Work, place: Path) -> Any:
    try:
        return work.result(place)
    except OSError as error:
        return error


def _never() -> bool:
    return False


def _moment(chance: random.Random, seconds: float, place: Path) -> Callable[[], bool]:
    """Return a moment that comes somewhen while a command runs."""
    start = time.monotonic()
    if chance.random() < 0.5:
        until = start + chance.uniform(0, seconds)
        return lambda: time.monotonic() >= until
    changes, delay = chance.randint(1, 8), chance.uniform(0, 0.004)
    seen = {_state(place)}

    def after_a_change() -> bool:
        seen.add(_state(place))
        if len(seen) <= changes:
            return False
        time.sleep(delay)
        return True

    return after_a_change


def _state(place: Path) -> tuple[tuple[str, int], ...]:
    """Return what there is and when it was written."""
    found = []
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                found.append((name, os.stat(os.path.join(folder, name)).st_mtime_ns))
            except FileNotFoundError:
                continue
    return tuple(found)
