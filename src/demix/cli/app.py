"""The command itself; its subcommands are in `papers` and `own_data`."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="demix",
    help="Recover the factors behind data, and learn how far they can be trusted.",
    epilog="Start with:  demix demo --out demo-output",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]


def _version(asked: bool) -> None:
    if asked:
        from demix import __version__

        typer.echo(f"demix {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
