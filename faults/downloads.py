"""Downloads that break off, and that are killed."""

from __future__ import annotations

from pathlib import Path

from faults.bench import Bench
from faults.kills import kill
from faults.outcome import Outcome
from faults.work import Work, bytes_of
from tests.file_server import FileServer

NAME = "mpi3d_real.npz"
SIZE = 2_000_000


def downloads(times: int, bench: Bench) -> Outcome:
    """Kill ``demix download`` at random moments, and let the server break off."""
    with FileServer() as server:
        data = server.files[NAME] = b"PK\x03\x04" + bench.chance.randbytes(SIZE - 4)
        server.pause = 0.01
        work = Work(
            "demix download",
            ["download", "mpi3d_real", "--source", server.address],
            lambda place: (place / NAME).read_bytes(),
            begun,
        )
        outcome = kill(work, times, bench)
        outcome.fault = "kill -9, or a connection that breaks off"
        server.pause = 0.0
        for _ in range(times):
            outcome.tried += 1
            server.breaks = [bench.chance.randrange(SIZE) for _ in range(5)]
            with bench.folder() as folder:
                done = bench.processes.run(*work.command(folder))
                same = done.returncode == 0 and bytes_of(work.place(folder) / NAME) == data
                outcome.expect(same, f"{work.name} ended with {done.stderr.strip()[-300:]}")
    return outcome


def begun(place: Path) -> dict[int, bool]:
    """Return which tenths of a file have come."""
    files = [place / NAME, place / f"{NAME}.demix-part"]
    size = max((file.stat().st_size for file in files if file.exists()), default=0)
    return {tenth: True for tenth in range(10 * size // SIZE)}
