"""``demix checkup``: the assumptions behind a model, on data."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from demix.assumptions import Checkup, checkup
from demix.cli.bars import counting_bar
from demix.data import Data, read_data, read_labels, read_pairs
from demix.errors import DemixError
from demix.estimators import ClassifierDemixer, ContrastiveDemixer, load_model
from demix.files import write_atomic
from demix.locks import held
from demix.outputs import claim_folder
from demix.provenance import provenance
from demix.report import checkup_page, write_page

_MARKER = "checkup.json"


def run_checkup(
    folder: Path,
    file: Path,
    out: Path,
    *,
    pairs: Path | None,
    labels: Path | None,
    key: str | None,
    columns: list[str] | None,
    refits: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Check a model; write ``checkup.json`` and ``checkup.html``."""
    model = load_model(folder)
    data = read_data(file, key=key, columns=columns)
    beside: dict[str, Any] = {}
    if isinstance(model, ClassifierDemixer):
        if labels is None:
            raise DemixError(f"{folder} was fitted to labels; give those of {file} with --labels.")
        read = read_labels(labels)
        beside["y"] = read.values if read.names is None else np.array(read.names)[read.values]
    elif labels is not None:
        raise DemixError(f"{folder} was not fitted to labels, but got --labels; leave it out.")
    if pairs is not None:
        if not isinstance(model, ContrastiveDemixer):
            raise DemixError(f"{folder} was not fitted to pairs, but got --pairs; leave it out.")
        beside["positives"] = read_pairs(pairs, len(data))
    place = claim_folder(out, _MARKER, command="demix checkup")
    with held(place), counting_bar(Console(stderr=True)) as count:
        begun: list[str] = []

        def say(what: str) -> None:
            count(len(begun), 4 if refits else 1, what)
            begun.append(what)

        found = checkup(model, data, refits=refits, seed=seed, say=say, **beside)
        told = _write(found, place, folder.name, data, file)
    if as_json:
        print(json.dumps(told, indent=2))
        return
    Console().print(_table(found))
    typer.echo(f"Supported: {found.supported}. {found.sentence}")
    typer.echo(f"Wrote {place}/checkup.json and checkup.html")


def _write(found: Checkup, place: Path, name: str, data: Data, file: Path) -> dict[str, Any]:
    """Write what was found, and return it as plain data."""
    origin = {
        "command": shlex.join(["demix", *sys.argv[1:]]),
        "data file": file.name,
        "data": data.digest(),
        **provenance(),
    }
    told = {**found.to_dict(), "provenance": origin}
    write_atomic(place / _MARKER, json.dumps(told, indent=2) + "\n")
    page = checkup_page(found.to_dict(), title=f"Check-up of {name}", provenance=origin)
    write_page(page, place / "checkup.html")
    return told


def _table(found: Checkup) -> Table:
    colours = {"pass": "green", "warn": "yellow", "fail": "red", "skipped": "dim"}
    table = Table("assumption", "verdict", "in words")
    for check in found.checks:
        verdict = f"[{colours[check.verdict]}]{check.verdict}[/]"
        table.add_row(check.name, verdict, check.sentence)
    return table
