"""Run the search: ``python -m benchmarks.search --rows t1:2,t2:1 --variants baseline,width-32``."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

from benchmarks.search import store
from benchmarks.search.measure import HELD_BACK, SEARCHED, run_variant
from benchmarks.search.table import TITLE, table
from benchmarks.search.variants import BASELINE, FACTORS, VARIANTS, Variant, variant_named
from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.outputs import refuse_other
from demix.papers.commands.reproduce import numbers
from demix.papers.runner.scales import scale_named

ROOT = Path(__file__).resolve().parents[1]
_TABLES = {"t1": "clica-table1", "t2": "clica-table2"}
FINAL_SEEDS = (0, 1, 2)

Job = tuple[str, int, Variant, int]


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("action", nargs="?", choices=("run", "merge", "table"), default="run")
    parser.add_argument("--rows", default=",".join(SEARCHED), help="t1:2 is row 2 of Table 1")
    parser.add_argument("--variants", default="all", help="names, factors or all; a+b combines")
    parser.add_argument("--seeds", default="100", help=f"never {FINAL_SEEDS}: the tables use them")
    parser.add_argument("--budget", type=float, default=1.0, help="times 300 or 600 steps")
    parser.add_argument("--part", help="K/N: every N-th run, into a file of its own")
    parser.add_argument("--held-back", action="store_true", help=f"allow {' and '.join(HELD_BACK)}")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "search")
    parser.add_argument("--list", action="store_true", help="list the variants by factor")
    return parser.parse_args(given)


def jobs(options: argparse.Namespace) -> list[Job]:
    """Return the runs that are asked for, those of this part only."""
    allowed = SEARCHED + (HELD_BACK if options.held_back else ())
    rows = options.rows.split(",")
    if any(row not in allowed for row in rows):
        raise DemixError(f"Rows must be among {', '.join(allowed)}, but got {options.rows}.")
    seeds = numbers(options.seeds, "--seeds")
    if set(seeds) & set(FINAL_SEEDS):
        raise DemixError(f"Seeds {FINAL_SEEDS} are kept for the final tables; got {options.seeds}.")
    part, parts = part_of(options) or (1, 1)
    chosen = [
        (*_row(row), variant, seed)
        for seed in seeds
        for i, variant in enumerate(variants_named(options.variants))
        for j, row in enumerate(rows)
        if (i + j) % parts == part - 1  # so that no part gets all of the slowest row
    ]
    return chosen


def _row(name: str) -> tuple[str, int]:
    short, number = name.split(":")
    return _TABLES[short], int(number)


def part_of(options: argparse.Namespace) -> tuple[int, int] | None:
    """Return ``(K, N)`` of ``--part K/N``."""
    if options.part is None:
        return None
    found = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", options.part)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise DemixError(f"--part must be K/N with K from 1 to N, but got {options.part}.")
    return part, parts


def variants_named(names: str) -> list[Variant]:
    """Return variants by name or factor, each once, in the order given."""
    found: dict[str, Variant] = {}
    for name in names.split(","):
        if name in ("all", *FACTORS):
            found |= {v.name: v for v in VARIANTS.values() if name in ("all", v.factor)}
        else:
            found[name] = variant_named(name)
    return list(found.values())


def run(options: argparse.Namespace) -> None:
    """Run what is not finished yet, keeping each result at once."""
    torch.set_num_threads(1)  # costs are those of one core
    scale, split = scale_named("laptop"), part_of(options)
    wanted = jobs(options)
    for number, (experiment, row, variant, seed) in enumerate(wanted, start=1):
        name = (experiment, row, variant.name, seed, options.budget)
        if name in {store.key(record) for record in store.read(options.out)}:
            continue
        record = run_variant(
            experiment, row, variant, seed=seed, budget=options.budget, scale=scale
        )
        if record is None:
            continue
        store.add(options.out, record, split and split[0])
        outcome = record["failure"] or f"{100 * record['score']:6.2f} %"
        print(
            f"{number}/{len(wanted)} {experiment} row {row} seed {seed} {variant.name:26s} "
            f"{outcome} cost {record['cost']} steps {record['steps']} {record['seconds']} s",
            flush=True,
        )


def write_table(folder: Path) -> None:
    """Write ``table.md`` of all runs in ``folder``."""
    records = store.read(folder)
    if not any(record["variant"] == BASELINE for record in records):
        raise DemixError(f"{folder} has no run of the baseline, which all others are compared to.")
    refuse_other(folder / "table.md", f"{TITLE}\n\n".encode())
    write_atomic(folder / "table.md", table(records))
    print(f"{len(records)} runs in {folder / 'table.md'}")


def main() -> None:
    """Do what the command line says."""
    options = arguments()
    if options.list:
        for factor in (BASELINE, *FACTORS):
            names = [v.name for v in VARIANTS.values() if v.factor == factor]
            if names:
                print(f"{factor}: {', '.join(names)}")
    elif options.action == "run":
        run(options)
    elif options.action == "merge":
        print(f"{store.merge(options.out)} runs in {options.out / store.FILE}")
    else:
        write_table(options.out)


if __name__ == "__main__":
    try:
        main()
    except DemixError as error:
        sys.exit(str(error))
