"""``python -m benchmarks.real``: demix with its defaults beside its peers, on real data."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from benchmarks.processes import environment
from benchmarks.real.methods import ALL
from benchmarks.real.run import (
    COMMAND,
    MARKER,
    cells_of,
    missing,
    read_results,
    run_cells,
    write_results,
)
from benchmarks.real.sets import SETS
from benchmarks.real.task import CACHE
from demix._support.errors import DemixError
from demix._support.locks import lock_folder
from demix._support.outputs import claim_folder, refuse_other
from demix.cli import run
from demix.cli.console import console
from demix.papers.commands.reproduce import numbers
from demix.papers.workers.executors import Workers


def real(
    out: Annotated[Path, typer.Option(help="Folder for real.json and table.md.")],
    sets: Annotated[str | None, typer.Option(help=f"Some of: {', '.join(SETS)}.")] = None,
    methods: Annotated[str | None, typer.Option(help=f"Some of: {', '.join(ALL)}.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0-2.")] = "0-2",
    cache: Annotated[Path, typer.Option(help="Folder for data and latents.")] = CACHE,
    again: Annotated[bool, typer.Option(help="Run what is there, too.")] = False,
) -> None:
    """Fit demix and its peers to data of packages, and read the known factors out.

    Takes about two hours of one core; a killed run goes on where it stopped.
    """
    names = _chosen(sets, list(SETS))
    cells = cells_of(names, _chosen(methods, ALL), numbers(seeds, "--seeds"))
    folder = claim_folder(out, MARKER, command=COMMAND)
    with lock_folder(folder), Progress(console=console(errors=True)) as progress:
        refuse_other(folder / "table.md", b"### The bars\n")
        wanted = cells if again else missing(cells, read_results(folder)["outcomes"], cache)
        bar = progress.add_task("fit", total=len(wanted))
        # A process that a peer brings down costs its own outcome only.
        with Workers(1, preload=["benchmarks.real.methods"]) as workers:
            for outcome in run_cells(wanted, folder, cache, workers):
                said = outcome.get("error") or outcome["scores"]
                where = f"{outcome['set']}, {outcome['method']}, seed {outcome['seed']}"
                progress.console.print(f"{where}: {said}", markup=False, highlight=False)
                progress.advance(bar)
        write_results(folder, read_results(folder))
    typer.echo(f"Wrote {folder}/{MARKER} and table.md")


def _chosen(given: str | None, known: list[str]) -> list[str]:
    names = known if given is None else [name.strip() for name in given.split(",")]
    for name in names:
        if name not in known:
            raise DemixError(f"Expected some of {', '.join(known)}, but got {name!r}.")
    return names


if __name__ == "__main__":
    os.environ.update(environment())  # for the worker
    run(partial(typer.run, real))
