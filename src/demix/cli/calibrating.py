"""``demix calibrate``: how often the check-up is right, on processes whose truth is known."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.progress import Progress

from demix.calibration import PROCESSES, calibration_table, run_process, summary
from demix.calibration.run import is_run
from demix.cli.console import console
from demix.errors import DemixError
from demix.files import write_atomic
from demix.locks import held
from demix.outputs import claim_folder, read_marker
from demix.provenance import provenance
from demix.validation import check_seed
from demix.workers import Workers, completed, threads

_LEAST = 1000
_MARKER, _COMMAND = "calibration.json", "demix calibrate"


def run_calibrate(
    out: Path, *, seeds: list[int], rows: int, only: list[str] | None, jobs: int
) -> None:
    """Run every process with every seed; what a file holds already is not run again."""
    known = {process.name: process for process in PROCESSES}
    unknown = [name for name in only or [] if name not in known]
    if unknown:
        raise DemixError(f"Unknown process {unknown[0]!r}; known are {'; '.join(known)}.")
    seeds = [check_seed(seed) for seed in seeds]
    if rows < _LEAST:
        raise DemixError(f"--rows must be at least {_LEAST}, but got {rows}.")
    folder = claim_folder(out, _MARKER, command=_COMMAND)
    with held(folder):
        runs = _calibrated(folder / _MARKER, seeds, rows, only or list(known), jobs)
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
    cells = [(name, seed) for seed in seeds for name in names if (name, seed) not in done]
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
