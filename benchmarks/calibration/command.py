"""``python -m benchmarks.calibration``: how often the check-up is right, where truth is known."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from benchmarks.calibration.processes import PROCESSES
from benchmarks.calibration.run import calibration_table, is_run, run_process, summary
from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.locks import lock_folder
from demix._support.outputs import claim_folder, read_marker, refuse_other
from demix._support.provenance import provenance
from demix._support.validation import check_seed
from demix.cli.console import console
from demix.cli.options import numbers
from demix.papers.workers.environment import threads
from demix.papers.workers.executors import completed
from demix.papers.workers.pool import Workers

_LEAST = 1000
_MARKER, _COMMAND = "calibration.json", "python -m benchmarks.calibration"


def calibrate(
    out: Annotated[Path, typer.Option(help="Folder for calibration.json and table.md.")],
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0-19.")] = "0-19",
    rows: Annotated[int, typer.Option(help="Rows of each process.")] = 6000,
    jobs: Annotated[int, typer.Option(help="How many to run at once.")] = 2,
    processes: Annotated[
        str | None, typer.Option(help="Only some processes, with ; between their names.")
    ] = None,
) -> None:
    """Count how often the check-up is right, on processes that break one assumption or none.

    Takes about an hour and a half on two cores; a killed run goes on where it stopped.
    """
    known = {process.name: process for process in PROCESSES}
    names = known if processes is None else [name.strip() for name in processes.split(";")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DemixError(f"Unknown process {unknown[0]!r}; known are {'; '.join(known)}.")
    chosen = [check_seed(seed) for seed in numbers(seeds, "--seeds")]
    for option, value, least in (("--rows", rows, _LEAST), ("--jobs", jobs, 1)):
        if value < least:
            raise DemixError(f"{option} must be at least {least}, but got {value}.")
    folder = claim_folder(out, _MARKER, command=_COMMAND)
    with lock_folder(folder):
        refuse_other(folder / "table.md", b"95 % interval |")
        runs = _calibrated(folder / _MARKER, chosen, rows, list(names), jobs)
        runs.sort(key=lambda run: (list(known).index(run["process"]), run["seed"]))
        _write(folder / _MARKER, runs, rows)
        write_atomic(folder / "table.md", calibration_table(runs))
    typer.echo(calibration_table(runs))
    typer.echo(f"Wrote {folder}/calibration.json and table.md")


def _calibrated(
    file: Path, seeds: list[int], rows: int, names: list[str], jobs: int
) -> list[dict[str, Any]]:
    """Return the runs that a file holds, and those that it did not hold yet."""
    runs = _known(file, rows)
    done = {(run["process"], run["seed"]) for run in runs}
    asked = dict.fromkeys((name, seed) for seed in seeds for name in names)
    cells = [cell for cell in asked if cell not in done]
    with Progress(console=console(errors=True)) as progress:
        task = progress.add_task("calibrate", total=len(cells))
        with Workers(jobs, preload=[__name__, "torch._dynamo"]) as workers:
            for _, future in completed(workers, partial(_run, rows), cells):
                runs.append(future.result())
                _write(file, runs, rows)
                progress.advance(task)
    return runs


def _known(file: Path, rows: int) -> list[dict[str, Any]]:
    """Return the runs of as many rows that a file holds."""
    if not file.exists():
        return []
    match read_marker(file):
        case {"rows": int(before), "runs": list(runs)} if all(map(is_run, runs)):
            if before != rows:
                raise DemixError(
                    f"{file} holds runs of {before} rows, but got --rows {rows}; choose a new "
                    "folder."
                )
            if len({(run["process"], run["seed"]) for run in runs}) == len(runs):
                return runs
    raise DemixError(
        f"Expected runs of '{_COMMAND}' in {file}, but it is damaged or of another version; choose "
        "a new folder."
    )


def _run(rows: int, cell: tuple[str, int]) -> dict[str, Any]:
    name, seed = cell
    start = time.perf_counter()
    process = next(process for process in PROCESSES if process.name == name)
    # Fits are small: a core does more on one of its own than two on one.
    with threads(1):
        run = run_process(process, seed, rows=rows)
    return {**run, "seconds": round(time.perf_counter() - start, 1)}


def _write(file: Path, runs: list[dict[str, Any]], rows: int) -> None:
    data = {
        "rows": rows,
        "tuned on": summary([run for run in runs if not run["kept"]]),
        "kept out": summary([run for run in runs if run["kept"]]),
        "runs": runs,
        "provenance": {"command": _COMMAND, **provenance()},
    }
    write_atomic(file, json.dumps(data, indent=1) + "\n")
