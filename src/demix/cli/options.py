"""The application, to which a module named as a command adds that command; options they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from demix._support.errors import DemixError
from demix._support.resources import table

if TYPE_CHECKING:
    from demix.data.data import Data

app = typer.Typer(
    name="demix",
    help="Recover the factors behind data, and learn how far they can be trusted.",
    epilog="Start with:  demix demo --out demo-output",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

HELPS = table("cli/helps.toml")

Overwrite = Annotated[bool, typer.Option("--overwrite", help=HELPS["overwrite"])]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]
FitFolder = Annotated[Path, typer.Argument(help="A folder that 'demix fit' wrote.")]

# How rows are read.
Key = Annotated[str | None, typer.Option(help="Which array of an .npz or .zarr file.")]
Header = Annotated[str, typer.Option(help="Whether a csv file has a header: auto, yes or no.")]
Columns = Annotated[str | None, typer.Option(help="Which columns of a table, e.g. speed,height.")]

PairsFile = Annotated[Path | None, typer.Option(help="Row numbers of pairs, (P, 2), .npy or .csv.")]
LabelColumn = Annotated[str | None, typer.Option(help=HELPS["label_column"])]
LabelsFile = Annotated[Path | None, typer.Option(help="The class of each row, .npy or .csv.")]

BlocksOption = Annotated[str | None, typer.Option("--blocks", help=HELPS["blocks"])]

_ON_RANKS = ("fit", "reproduce")  # commands that the ranks of torchrun run together


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
        from demix._support.process_group.group import under_torchrun

        if under_torchrun():
            raise DemixError(
                f"demix {command} runs in one process; start it without torchrun, which is for "
                f"{' and '.join(_ON_RANKS)}."
            )


@dataclass(frozen=True)
class FitOptions:
    """Options of ``fit`` and ``consensus``: rows, pairs or labels, assumptions."""

    data: Annotated[Path, typer.Argument(help=HELPS["data"])]
    pairs: PairsFile = None
    lag: Annotated[str | None, typer.Option(help=HELPS["lag"])] = None
    labels: LabelsFile = None
    instances: Annotated[bool, typer.Option("--instances", help=HELPS["instances"])] = False
    label_column: LabelColumn = None
    time: Annotated[Path | None, typer.Option(help=HELPS["time"])] = None
    time_column: Annotated[str | None, typer.Option(help=HELPS["time_column"])] = None
    space: Annotated[str | None, typer.Option(help=HELPS["space"])] = None
    conditional: Annotated[str | None, typer.Option(help=HELPS["conditional"])] = None
    marginal: Annotated[str | None, typer.Option(help=HELPS["marginal"])] = None
    logits: Annotated[str | None, typer.Option(help=HELPS["logits"])] = None
    n_latents: Annotated[int, typer.Option(help="Number of latents.")] = 3
    encoder: Annotated[str | None, typer.Option(help=HELPS["encoder"])] = None
    components: Annotated[int | None, typer.Option(help=HELPS["components"])] = None
    steps: Annotated[int | None, typer.Option(help=HELPS["steps"])] = None
    validation: Annotated[float | None, typer.Option(help=HELPS["validation"])] = None
    device: Annotated[str, typer.Option(help="Where torch computes, e.g. cuda.")] = "cpu"
    threads: Annotated[int | None, typer.Option(help=HELPS["threads"], min=1, max=1024)] = None
    seed: Annotated[int, typer.Option(help=HELPS["seed"])] = 0
    key: Key = None
    columns: Columns = None
    header: Header = "auto"

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        return self.data, self.pairs, self.labels, self.time

    def read_rows(self) -> Data:
        """Read and check the rows, before anything that learns from them is imported."""
        check_given(*self.inputs)
        from demix._support.validation import check_seed
        from demix.data.checks import check_data
        from demix.data.names import other_names
        from demix.data.reading import read_data

        check_seed(self.seed)
        columns = column_names(self.columns)
        own = ((self.time, self.time_column), (self.labels, self.label_column))
        without = [column for file, column in own if file is None and column is not None]
        if without and columns is None:
            columns = other_names(self.data, without, self.header)
        data = read_data(self.data, key=self.key, columns=columns, header=self.header)
        check_data(data)
        return data


def with_fit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `FitOptions`, passed to it as its first argument."""
    hints = get_type_hints(FitOptions, include_extras=True)
    shared = [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(FitOptions).parameters.items()
    ]
    _, *own = signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(**arguments: Any) -> None:
        options = FitOptions(**{f.name: arguments.pop(f.name) for f in fields(FitOptions)})
        command(options, **arguments)

    parameters = [shared[0], *own, *shared[1:]]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def check_given(*places: Path | None) -> None:
    """Raise DemixError if a file or folder does not exist or may not be read."""
    for place in places:
        if place is not None and not os.access(place, os.R_OK):
            found = "may not be read" if os.path.lexists(place) else "does not exist"
            raise DemixError(f"Expected a file or folder to read, but {place} {found}.")


def column_names(text: str | None) -> list[str] | None:
    """Read ``speed,height``."""
    return None if text is None else text.split(",")


def place_of(text: str, names: Sequence[str]) -> int | None:
    """Return the place of a column, given by name or by number from 0; None if there is none."""
    text = text.strip()
    if text in names:
        return names.index(text) if names.count(text) == 1 else None
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) < len(names) else None


def read_blocks(text: str | None) -> tuple[Any, list[Path]]:
    """Return what ``--blocks`` says, and the file that it was read from."""
    if text is None or text == "auto":
        return text, []
    if text.isdecimal() and len(text) < 10:
        return int(text), []
    import numpy as np

    from demix.data.csv_files import refuse_missing
    from demix.data.names import read_names

    check_given(Path(text))
    # Numbered: in an array of text, each name would take the room of the longest.
    names = np.array(read_names(Path(text)), dtype=object)
    refuse_missing(names, f"a block in {text}")
    return np.unique(names, return_inverse=True)[1], [Path(text)]
