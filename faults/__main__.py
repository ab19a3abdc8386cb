"""Run the fault suite: ``python -m faults --out results/faults``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from demix import cli
from demix._support.files import claiming, write_atomic
from demix._support.outputs import refuse_other
from demix._support.provenance import provenance
from faults import damage, disk, limits, oddities, strangers
from faults.bench import Bench
from faults.downloads import downloads
from faults.fuzzing import fuzz
from faults.kills import kill
from faults.outcome import Outcome
from faults.processes import Processes, serving
from faults.table import TITLE, table

ROOT = Path(__file__).resolve().parents[1]
ALONE = ("demix fit", "demix render sprites", "demix render 3dident", "demix reproduce")
LONG = (*ALONE, "demix reproduce, 2 processes")
ONCE = ("demix transform", "demix export", "demix evaluate", "demix fit")
ALL = ("demix transform", "demix export", "demix evaluate", *ALONE)


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    kills: tuple[int, ...] = (100, 50, 50, 60, 40)
    disks: int = 6
    regions: int = 64
    checkpoints: int = 12
    rooms: tuple[int, ...] = (8, 32, 96, 192, 384, 768, 1536, 3072)
    together: int = 4
    changes: int = 20
    downloads: int = 40
    examples: int = 1000

    def shared(self, share: float) -> Sizes:
        """Return so much of all that is done at random; of each at least two."""

        def some(count: int) -> int:
            return max(2, round(share * count))

        return Sizes(
            kills=tuple(map(some, self.kills)),
            disks=some(self.disks),
            regions=some(self.regions),
            checkpoints=some(self.checkpoints),
            together=some(self.together),
            changes=some(self.changes),
            downloads=some(self.downloads),
            examples=some(self.examples),
        )


def series(bench: Bench, second: Processes, sizes: Sizes) -> Iterator[Callable[[], Outcome]]:
    """Go through everything that can be done to every work."""
    works = bench.works
    for name, kills in zip(LONG, sizes.kills, strict=True):
        yield partial(kill, works[name], kills, bench)
    for name in ALL:
        yield partial(disk.too_small, works[name], sizes.disks, bench)
        yield partial(disk.limited, works[name], sizes.disks, bench)
        yield partial(disk.read_only, works[name], bench)
    yield partial(damage.checkpoint, sizes.checkpoints, bench)
    yield partial(damage.model, sizes.regions, bench)
    yield partial(damage.rendered, sizes.regions // 4, bench)
    for name in ("demix transform", *ALONE):
        yield partial(limits.memory, works[name], sizes.rooms, bench)
    for name in LONG:
        yield partial(limits.signals, works[name], bench)
    for name in LONG:
        yield partial(limits.together, works[name], sizes.together, bench, second)
    for name in ALL:
        yield partial(strangers.traps, works[name], bench)
    for name in ALL:
        yield partial(strangers.beside, works[name], bench)
    for name in ONCE:
        yield partial(strangers.again, works[name], bench)
    yield partial(strangers.onto_inputs, bench)
    yield partial(strangers.pipes, bench)
    yield partial(strangers.changes, sizes.changes, bench)
    yield partial(strangers.exchanged, sizes.changes, bench)
    yield partial(strangers.impostors, bench)
    yield partial(strangers.other_data, bench)
    for oddity in (oddities.names, oddities.options, oddities.settings, oddities.calls):
        yield partial(oddity, bench)
    yield partial(downloads, sizes.downloads, bench)
    yield partial(fuzz, sizes.examples)


def tell(outcome: Outcome, seconds: float) -> None:
    """Print what a series came to."""
    print(
        f"{seconds:5.0f} s  {outcome.fault}, {outcome.work}: {outcome.tried} times, "
        f"{outcome.refused} refused, {outcome.lost} lost, {outcome.wrong} wrong",
        *outcome.problems[:3],
        sep="\n    ",
        flush=True,
    )


def main() -> None:
    """Do everything, tell how it goes, and write what came out."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "faults")
    parser.add_argument("--seed", type=int, default=0, help="of moments and places")
    parser.add_argument("--share", type=float, default=1.0, help="of all faults that are tried")
    options = parser.parse_args()
    with claiming(options.out):
        refuse_other(options.out / "faults.json", rb'{\n "series": \[\n  {\n   "fault": "')
        refuse_other(options.out / "table.md", f"# {TITLE}\n\n".encode())
        bad = measure(options)
    sys.exit(f"{bad} things went wrong; see {options.out / 'faults.json'}" if bad else 0)


def measure(options: argparse.Namespace) -> int:
    """Try all faults, write what came out, and return how many things went wrong."""
    start = time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with serving(root / "first") as first, serving(root / "second") as second:
            bench = Bench(root, Processes(first), options.seed)
            for run in series(bench, Processes(second), Sizes().shared(options.share)):
                outcome = run()
                if outcome.tried or outcome.wrong:
                    outcomes.append(outcome)
                    tell(outcome, time.monotonic() - start)
    data = {
        "series": [outcome.to_dict() for outcome in outcomes],
        "seconds": round(time.monotonic() - start),
        "provenance": {
            "command": f"python -m faults --seed {options.seed} --share {options.share:g}",
            **provenance(),
        },
    }
    write_atomic(options.out / "faults.json", json.dumps(data, indent=1) + "\n")
    write_atomic(options.out / "table.md", table(data))
    return sum(outcome.wrong + outcome.lost for outcome in outcomes)


if __name__ == "__main__":
    cli.run(main)
