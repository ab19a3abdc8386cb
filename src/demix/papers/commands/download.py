"""``demix download``: the official files of a data set."""

from pathlib import Path
from typing import Annotated

import typer

from demix.cli.options import app

_MEGABYTE = 10**6


@app.command(epilog="Example:  demix download shapes3d --out data")
def download(
    dataset: Annotated[
        str,
        typer.Argument(
            help="dsprites, shapes3d, mpi3d_toy, mpi3d_realistic, mpi3d_real, cars3d or smallnorb."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    source: Annotated[
        str | None, typer.Option(help="Address of a mirror with files of the official names.")
    ] = None,
    checksum: Annotated[
        str | None, typer.Option(help="Check this, e.g. sha256:..., instead of the known one.")
    ] = None,
) -> None:
    """Fetch the official files of a data set, and check them.

    An interrupted download continues when the same command is given again. Files that exist
    already are only checked.
    """
    from demix.cli.console import console, print_lines
    from demix.cli.progress import counting_bar
    from demix.papers.datasets.download import fetch_dataset

    with counting_bar(console(errors=True)) as count:

        def callback(done: int, total: int, what: str) -> None:
            count(done // _MEGABYTE, total // _MEGABYTE, f"{what}, MB")

        path = fetch_dataset(dataset, out, source=source, checksum=checksum, callback=callback)
    print_lines(f"{path} is complete; continue with: demix reproduce ce-dislib --data {path}")
