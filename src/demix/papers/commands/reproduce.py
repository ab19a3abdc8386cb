"""``demix reproduce``: a table or figure of a paper, with its published numbers."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from demix._support.errors import DemixError
from demix.cli import ignore_interrupts
from demix.cli.options import AsJson, app

# What the jobs of a sweep import.
PRELOAD = ("demix.papers.experiments", "demix.papers.runner.reproduce")
_MOST = 10_000  # rows or seeds that may be asked for at once; each takes some seconds at least


@app.command(epilog="Example:  demix reproduce clica-table1 --rows 2,3 --seeds 0,1,2 --out table1")
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment; see 'demix list'.")],
    rows: Annotated[str | None, typer.Option(help="Row numbers from 1, e.g. 1,2,5-7.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0,1,2.")] = "0",
    scale: Annotated[
        str, typer.Option(help="smoke (seconds), laptop (two cores) or paper (GPU days).")
    ] = "laptop",
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Files or folders that the experiment needs; may be given twice."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Run jobs in parallel: local, local:N (processes) or dask:ADDRESS (a cluster)."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: ./EXPERIMENT-SCALE.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a table or figure of a paper and compare it with the published numbers.

    Writes results.json, table.md and table.html. An interrupted run continues where it stopped:
    finished jobs are never run twice.
    """
    numbered = None if rows is None else numbers(rows, "--rows")
    counted = numbers(seeds, "--seeds")
    from demix.cli.console import console, print_json, print_lines, warnings_to
    from demix.papers.workers.executors import open_executor

    folder = out or Path(f"{experiment}-{scale}")
    try:
        # Worker processes import what they need while this process does the same.
        opened = nullcontext() if executor is None else open_executor(executor, preload=PRELOAD)
        with opened as engine:
            from demix._support.process_group.group import joined
            from demix.cli.progress import training_bar
            from demix.papers.commands.table_bars import TableBars
            from demix.papers.experiments import experiment_named
            from demix.papers.runner.reproduce import reproduce as run
            from demix.papers.runner.scales import scale_named

            chosen, size = experiment_named(experiment), scale_named(scale)
            # All ranks that torchrun has started train, and rank 0 does the rest.
            with joined() as ranks:
                leads = ranks.leads  # which nobody knows once the ranks have parted
                terminal = console(errors=as_json, quiet=not leads)
                with warnings_to(terminal), training_bar(terminal) as progress:
                    records = run(
                        chosen,
                        folder,
                        rows=numbered,
                        seeds=counted,
                        scale=size,
                        data=data or [],
                        executor=engine,
                        callback=TableBars(progress, chosen.score),
                    )
    except KeyboardInterrupt:
        ignore_interrupts()
        console(errors=True).print("Interrupted; finished jobs are kept.")
        raise typer.Exit(130) from None
    if as_json and leads:
        print_json(records, indent=1)
    elif leads:
        figure = ", figure.svg, figure.png" if (folder / "figure.svg").is_file() else ""
        print_lines(f"Wrote {folder}/results.json{figure}, table.md and table.html")


def numbers(text: str, option: str) -> list[int]:
    """Read ``1,2,5-7``.

    >>> numbers("1,5-7", "--rows")
    [1, 5, 6, 7]
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            span = range(int(first), int(last if dash else first) + 1)
            if not span or span[-1] - span[0] + len(found) >= _MOST:
                raise ValueError(part)
            found += span
    except ValueError:
        raise DemixError(
            f"{option} takes whole numbers such as 1,2,5-7, at most {_MOST} of them, but got "
            f"{text!r}."
        ) from None
    return found
