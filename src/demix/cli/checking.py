"""``demix checkup``: the assumptions behind a model, on data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from demix._support.errors import DemixError
from demix._support.provenance import provenance
from demix.cli.bars import counting_bar
from demix.cli.claims import begin, claimed, finish
from demix.cli.console import console
from demix.cli.fitted import opened, read_like
from demix.data.supervision import read_labels, read_pairs
from demix.diagnostics.checkup import checkup
from demix.diagnostics.checkup_result import Checkup
from demix.estimators.classifier import ClassifierDemixer
from demix.estimators.contrastive import ContrastiveDemixer
from demix.estimators.models import load_model
from demix.report.checkup import checkup_page
from demix.report.page import write_page

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
    header: str,
    refits: bool,
    seed: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Check a model; write ``checkup.json`` and ``checkup.html``."""
    model = load_model(folder)
    data = read_like(opened(folder), file, key=key, columns=columns, header=header)
    beside: dict[str, Any] = {}
    if isinstance(model, ClassifierDemixer):
        if labels is None:
            raise DemixError(f"{folder} was fitted to labels; give those of {file} with --labels.")
        read = read_labels(labels)
        beside["y"] = read.as_given()
    elif labels is not None:
        raise DemixError(f"{folder} was not fitted to labels, but got --labels; leave it out.")
    if pairs is not None:
        if not isinstance(model, ContrastiveDemixer):
            raise DemixError(f"{folder} was not fitted to pairs, but got --pairs; leave it out.")
        beside["positives"] = read_pairs(pairs, len(data))
    claim = claimed(
        out,
        _MARKER,
        command="demix checkup",
        inputs=[folder, file, pairs, labels],
        overwrite=overwrite,
        about={"data file": file.name, "data": data.digest()},
    )
    with claim as (place, origin), counting_bar(console(errors=True)) as count:
        begun: list[str] = []

        def say(what: str) -> None:
            count(len(begun), 4 if refits else 1, what)
            begun.append(what)

        found = checkup(model, data, refits=refits, seed=seed, callback=say, **beside)
        told = {**found.to_dict(), "provenance": {**origin, **provenance()}}
        title = f"Check-up of {folder.name}"
        page = checkup_page(found.to_dict(), title=title, provenance=told["provenance"])
        begin(place / _MARKER, origin)
        write_page(page, place / "checkup.html")
        finish(place / _MARKER, told)
    if as_json:
        print(json.dumps(told, indent=2))
        return
    console().print(_table(found))
    typer.echo(f"Supported: {found.supported}. {found.sentence}")
    typer.echo(f"Wrote {place}/checkup.json and checkup.html")


def _table(found: Checkup) -> Table:
    colours = {"pass": "green", "warn": "yellow", "fail": "red", "skipped": "dim"}
    table = Table("assumption", "verdict", "in words")
    for check in found.checks:
        verdict = Text(check.verdict, style=colours[check.verdict])
        table.add_row(check.name, verdict, check.sentence)
    return table
