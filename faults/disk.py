"""Disks that are full or read-only, and limits on the size of files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.bench import Bench
from faults.outcome import Outcome
from faults.work import Work

_FULL = ("No space left", "is full", "are free", "File too large")
_CLOSED = ("ermission denied", "ead-only")


def too_small(work: Work, times: int, bench: Bench) -> Outcome:
    """Run a command on disks of random sizes, each of which then becomes large enough."""
    outcome = Outcome("disk too small, then large enough", work.name)
    expected = bench.undisturbed(work)
    for _ in range(times):
        size = int(bench.chance.uniform(0.05, 1.0) * sum(bench.files[work.name]))
        with bench.folder() as folder, disk(folder, size) as mounted:
            if not mounted:
                return outcome
            _twice(work, bench, outcome, folder, expected, lambda: enlarged(folder))
    return outcome


def limited(work: Work, times: int, bench: Bench) -> Outcome:
    """Run a command with random limits on the size of files, and then without."""
    outcome = Outcome("limit on the size of files, then none", work.name)
    expected = bench.undisturbed(work)
    for _ in range(times):
        most = int(bench.chance.uniform(0.01, 1.0) * max(bench.files[work.name]))
        with bench.folder() as folder:
            _twice(work, bench, outcome, folder, expected, lambda: None, most)
    return outcome


def _twice(
    work: Work,
    bench: Bench,
    outcome: Outcome,
    folder: Path,
    expected: object,
    mend: Callable[[], None],
    most: int | None = None,
) -> None:
    """Run a command under a fault, and once more after that was mended."""
    outcome.tried += 1
    limit = "" if most is None else "file size"
    done = bench.processes.run(*work.command(folder), limit=limit, most=most or 0)
    if done.returncode:
        outcome.refusal(done, *_FULL)
        before = work.finished(work.place(folder))
        mend()
        done = bench.processes.run(*work.command(folder))
        now = work.finished(work.place(folder))
        outcome.lost += sum(name not in now for name in before)
    whole = done.returncode == 0 and work.result(work.place(folder)) == expected
    outcome.expect(whole, f"{work.name} did not go on: {done.stderr.strip()[-300:]}")


def read_only(work: Work, bench: Bench) -> Outcome:
    """Run a command into a folder that it may not write to."""
    outcome = Outcome("read-only folder", work.name)
    with bench.folder() as folder:
        folder.chmod(0o555)
        outcome.tried += 1
        outcome.refusal(bench.processes.run(*work.command(folder), limit="nobody"), *_CLOSED)
        outcome.expect(not any(folder.iterdir()), f"{work.name} wrote all the same")
    return outcome


@contextmanager
def disk(place: Path, size: int) -> Iterator[bool]:
    """Mount a disk of some bytes, where that is allowed; tell whether it is."""
    options = f"size={max(4096, size // 4096 * 4096)}"
    if not _mount("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)):
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", str(place)], check=True)


def enlarged(place: Path) -> None:
    """Make a mounted disk large."""
    subprocess.run(["mount", "-o", "remount,size=256m", str(place)], check=True)


def _mount(*command: str) -> bool:
    if os.name != "posix" or os.geteuid() != 0:
        return False
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
