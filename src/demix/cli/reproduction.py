"""``demix reproduce``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

import typer

from demix._support.process_group.launch import joined
from demix.cli.bars import training_bar
from demix.cli.console import console
from demix.cli.table_bars import TableBars
from demix.cli.warning import warnings_to
from demix.papers.experiments import experiment_named
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named


def run_reproduce(
    name: str,
    *,
    rows: Sequence[int] | None,
    seeds: Sequence[int],
    scale: str,
    data: Sequence[Path],
    executor: Executor | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run an experiment with bars, then say where its tables are.

    Of the ranks that `torchrun` has started all train, and rank 0 does the rest.
    """
    experiment, size = experiment_named(name), scale_named(scale)
    folder = out or Path(f"{name}-{scale}")
    try:
        with joined() as ranks:
            leads = ranks.leads
            terminal = console(errors=as_json, quiet=not leads)
            with warnings_to(terminal), training_bar(terminal) as progress:
                callback = TableBars(progress, experiment.score)
                records = reproduce(
                    experiment,
                    folder,
                    rows=rows,
                    seeds=seeds,
                    scale=size,
                    data=data,
                    executor=executor,
                    callback=callback,
                )
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted; what was finished is kept.")
        raise typer.Exit(130) from None
    if not leads:
        return
    if as_json:
        print(json.dumps(records, indent=1))
    else:
        figure = ", figure.svg, figure.png" if (folder / "figure.svg").is_file() else ""
        typer.echo(f"Wrote {folder}/results.json{figure}, table.md and table.html")
