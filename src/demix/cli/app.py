"""The application; every other module named as a command adds that command to it."""

import os
from typing import Annotated

import typer

from demix._support.errors import DemixError

app = typer.Typer(
    name="demix",
    help="Recover the factors behind data, and learn how far they can be trusted.",
    epilog="Start with:  demix demo --out demo-output",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Commands that the ranks of torchrun run together.
_ON_RANKS = ("fit", "reproduce")


def _version(asked: bool) -> None:
    if asked:
        from demix import __version__

        typer.echo(f"demix {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    command = context.invoked_subcommand
    if "RANK" in os.environ and command not in _ON_RANKS:
        from demix._support.process_group.launch import under_torchrun

        if under_torchrun():
            raise DemixError(
                f"demix {command} runs in one process; start it without torchrun, which is for "
                f"{' and '.join(_ON_RANKS)}."
            )
