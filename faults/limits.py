"""Too little memory, blocked signals, and two runs into one folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from demix._support.files import LOCK
from faults.bench import Bench
from faults.outcome import Outcome
from faults.processes import Processes
from faults.work import Work

MEBIBYTE = 1 << 20
_PATIENCE = 300.0  # seconds after which a command hangs


def memory(work: Work, rooms: Sequence[int], bench: Bench) -> Outcome:
    """Run a command with so many mebibytes beside what importing it took."""
    outcome = Outcome("limit on memory", work.name)
    expected = bench.undisturbed(work)
    for room in rooms:
        outcome.tried += 1
        with bench.folder() as folder:
            command = work.command(folder)
            done = bench.processes.run(*command, limit="memory", most=room * MEBIBYTE)
            if done.returncode:
                outcome.refusal(done, "of memory, but")
                left = {file.name for file in folder.rglob("*") if file.is_file()}
                outcome.expect(left <= {*work.keeps}, f"{work.name} had begun: {sorted(left)}")
            else:
                same = work.result(work.place(folder)) == expected
                outcome.expect(same, f"{work.name} ended with other bits")
    return outcome


def signals(work: Work, bench: Bench) -> Outcome:
    """Block all signals, as what starts a command may leave them: it ends as ever."""
    outcome = Outcome("all signals blocked", work.name)
    expected = bench.undisturbed(work)
    with bench.folder() as folder:
        outcome.tried += 1
        bench.processes.start(*work.command(folder), limit="signals")
        stop = time.monotonic() + _PATIENCE
        while bench.processes.running() and time.monotonic() < stop:
            time.sleep(0.01)
        done = bench.processes.killed_now()
        same = done.returncode == 0 and work.result(work.place(folder)) == expected
        outcome.expect(same, f"{work.name} ended with {done.returncode}: {done.stderr[-300:]}")
    return outcome


def together(work: Work, times: int, bench: Bench, second: Processes) -> Outcome:
    """Start a command twice: the second is told who has the folder, and goes on after a kill."""
    outcome = Outcome("two runs into one folder", work.name)
    expected = bench.undisturbed(work)
    for number in range(times):
        with bench.folder() as folder:
            outcome.tried += 1
            process = bench.processes.start(*work.command(folder))
            if not _held(work.place(folder), bench.processes):
                outcome.expect(False, f"{work.name} ended before a second one came")
                continue
            done = second.run(*work.command(folder))
            outcome.refusal(done, f"is in use by process {process}")
            if number % 2:
                bench.processes.killed_now()
                done = second.run(*work.command(folder))
            else:
                done = bench.processes.wait()
            same = done.returncode == 0 and work.result(work.place(folder)) == expected
            outcome.expect(same, f"{work.name} ended with {done.stderr.strip()[-300:]}")
    return outcome


def _held(place: Path, processes: Processes) -> bool:
    """Wait until a folder is held by what was started."""
    while processes.running():
        if (place / LOCK).exists() and (place / LOCK).stat().st_size:
            return True
    return False
