"""``demix download``."""

from __future__ import annotations

from pathlib import Path

import typer

from demix.cli.bars import counting_bar
from demix.cli.console import console
from demix.papers.datasets.dislib.download import fetch_dataset

_MEGABYTE = 10**6


def run_download(name: str, *, out: Path, source: str | None, checksum: str | None) -> None:
    """Fetch the files of a data set with a bar, then say what they are for."""
    with counting_bar(console(errors=True)) as count:

        def report(done: int, total: int, what: str) -> None:
            count(done // _MEGABYTE, total // _MEGABYTE, f"{what}, MB")

        path = fetch_dataset(name, out, source=source, checksum=checksum, report=report)
    typer.echo(f"{path} is there; go on with: demix reproduce ce-dislib --data {path}")
