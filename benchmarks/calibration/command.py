"""``python -m benchmarks.calibration``: how often the check-up is right, where truth is known."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from benchmarks.calibration.process import Process
from benchmarks.calibration.processes import PROCESSES
from benchmarks.calibration.run import calibration_table, is_run, run_process, summary
from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.locks import lock_folder
from demix._support.outputs import claim_folder, read_marker, refuse_other
from demix._support.provenance import provenance
from demix._support.validation import check_seed
from demix.cli.console import console
from demix.papers.commands.reproduce import numbers
from demix.papers.workers.executors import Workers, completed, threads

_MARKER, _COMMAND = "calibration.json", "python -m benchmarks.calibration"


def calibrate(
    out: Annotated[Path, typer.Option(help="Folder for calibration.json and table.md.")],
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0-19.")] = "0-19",
    jobs: Annotated[int, typer.Option(help="How many to run at once.")] = 2,
    processes: Annotated[
        str | None, typer.Option(help="Only some processes, with ; between their names.")
    ] = None,
) -> None:
    """Count how often the check-up is right, on processes that break one assumption or none.

    Takes about eight hours on two cores; a killed run goes on where it stopped.
    """
    known = {process.name: process for process in PROCESSES}
    names = known if processes is None else [name.strip() for name in processes.split(";")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DemixError(f"Unknown process {unknown[0]!r}; known are {'; '.join(known)}.")
    chosen = [check_seed(seed) for seed in numbers(seeds, "--seeds")]
    if jobs < 1:
        raise DemixError(f"--jobs must be at least 1, but got {jobs}.")
    folder = claim_folder(out, _MARKER, command=_COMMAND)
    with lock_folder(folder):
        refuse_other(folder / "table.md", rb"### [\w ]+\n\n\| process, where ")
        runs = _calibrated(folder / _MARKER, chosen, [known[name] for name in names], jobs)
        runs.sort(key=lambda run: (list(known).index(run["process"]), run["seed"]))
        _write(folder / _MARKER, runs)
        write_atomic(folder / "table.md", calibration_table(runs))
    typer.echo(calibration_table(runs))
    typer.echo(f"Wrote {folder}/calibration.json and table.md")


def _calibrated(
    file: Path, seeds: list[int], processes: list[Process], jobs: int
) -> list[dict[str, Any]]:
    """Return the runs that a file holds, and those that it did not hold yet."""
    runs = _known(file)
    done = {(run["process"], run["seed"]) for run in runs}
    asked = dict.fromkeys(
        (process.name, seed)
        for number, seed in enumerate(seeds)
        for process in processes
        if number < process.most
    )
    cells = [cell for cell in asked if cell not in done]
    with Progress(console=console(errors=True)) as progress:
        task = progress.add_task("calibrate", total=len(cells))
        with Workers(jobs, preload=[__name__]) as workers:
            for _, future in completed(workers, _run, cells):
                runs.append(future.result())
                _write(file, runs)
                progress.advance(task)
    return runs


def _known(file: Path) -> list[dict[str, Any]]:
    """Return the runs that a file holds."""
    if not file.exists():
        return []
    match read_marker(file):
        case {"runs": list(runs)} if all(map(is_run, runs)):
            if len({(run["process"], run["seed"]) for run in runs}) == len(runs):
                return runs
    raise DemixError(
        f"Expected runs of '{_COMMAND}' in {file}, but it is damaged or of another version; choose "
        "a new folder."
    )


def _run(cell: tuple[str, int]) -> dict[str, Any]:
    name, seed = cell
    start = time.perf_counter()
    process = next(process for process in PROCESSES if process.name == name)
    # Fits are small: a core does more on one of its own than two on one.
    with threads(1):
        run = run_process(process, seed)
    return {**run, "seconds": round(time.perf_counter() - start, 1)}


def _write(file: Path, runs: list[dict[str, Any]]) -> None:
    data = {
        "tuned on": summary([run for run in runs if not run["kept"]]),
        "kept out": summary([run for run in runs if run["kept"]]),
        "runs": runs,
        "provenance": {"command": _COMMAND, **provenance()},
    }
    write_atomic(file, json.dumps(data, indent=1) + "\n")
