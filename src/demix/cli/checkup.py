"""``demix checkup``: the assumptions behind a model, checked on data."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from demix._support.errors import DemixError
from demix.cli import options

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "skipped": "dim"}


@options.app.command(epilog="Example:  demix checkup model series.npy --out check")
def checkup(
    model: options.FitFolder,
    data: Annotated[Path, typer.Argument(help="The rows it was fitted to, or new ones.")],
    out: Annotated[Path, typer.Option(help="Folder for checkup.json and checkup.html.")],
    pairs: options.PairsFile = None,
    labels: options.LabelsFile = None,
    label_column: options.LabelColumn = None,
    key: options.Key = None,
    columns: options.Columns = None,
    header: options.Header = "auto",
    refits: Annotated[bool, typer.Option(help=options.HELPS["refits"])] = True,
    seed: Annotated[int, typer.Option(help="Seed of the simulated nulls.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Check the assumptions that a model relies on: pass, warn or fail for each.

    Ends with the equivalence class that is supported, by which theorem, and the sentence for a
    paper. Uses held-out rows only.
    """
    options.check_given(model, data, pairs, labels)
    from rich.table import Table
    from rich.text import Text

    from demix.cli.claims import claimed
    from demix.cli.console import console, print_json, print_lines
    from demix.cli.models import open_fit, read_like
    from demix.cli.progress import counting_bar
    from demix.data.supervision import read_labels, read_pairs
    from demix.diagnostics.checkup import checkup as check_assumptions
    from demix.estimators.models import load_model

    demixer = load_model(model)
    rows = read_like(open_fit(model), data, key=key, columns=columns, header=header)
    labels = data if labels is None and label_column is not None else labels
    for kind, file in (("labels", labels), ("pairs", pairs)):
        if file is not None and demixer.supervision != kind:
            raise DemixError(f"{model} was not fitted to {kind}, but got --{kind}; leave it out.")
    if labels is None and demixer.supervision == "labels":
        raise DemixError(f"{model} was fitted to labels; give --labels or --label-column.")
    targets: dict[str, Any] = {}
    targets |= {} if labels is None else {"y": read_labels(labels, column=label_column).as_given()}
    targets |= {} if pairs is None else {"positives": read_pairs(pairs, len(rows))}
    inputs, about = [model, data, pairs, labels], {"data file": data.name, "data": rows.digest()}
    with (
        claimed("checkup", out, "checkup.json", inputs, overwrite=overwrite, about=about) as claim,
        counting_bar(console(errors=True)) as count,
    ):
        begun, total = itertools.count(), 4 if refits else 1
        targets["callback"] = lambda what: count(next(begun), total, what)
        found = check_assumptions(demixer, rows, refits=refits, seed=seed, **targets)
        claim.begin()
        title, page = f"Check-up of {model.name}", claim.folder / "checkup.html"
        found.report(page, title=title, provenance=claim.origin)
        result = {**found.to_dict(), "provenance": claim.provenance}
        claim.finish(result)
    if as_json:
        print_json(result)
        return
    table = Table("assumption", "verdict", "finding and next step")
    for check in found.checks:
        verdict = Text(check.verdict, style=_COLOURS[check.verdict])
        table.add_row(check.name, verdict, f"{check.sentence} {check.advice}".strip())
    console().print(table)
    print_lines(
        f"Supported: {found.supported}. {found.sentence}",
        f"Wrote {claim.folder}/checkup.json and checkup.html",
    )
