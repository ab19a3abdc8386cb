"""``demix probe``: what a representation tells of known factors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import typer
from rich.table import Table
from rich.text import Text

from demix._support.errors import DemixError, listed
from demix._support.files import file_digest
from demix._support.provenance import provenance
from demix.cli.bars import counting_bar
from demix.cli.claims import begin, claimed_if, finish
from demix.cli.console import console, print_table, print_warning
from demix.data.data import Data
from demix.data.factors import KnownFactors, read_factors
from demix.data.names import match_rows, read_names, table_names
from demix.data.reading import read_data
from demix.metrics.probes.factor import columns_of
from demix.metrics.probes.probe import LEVEL, Probe, plan, probe
from demix.report.bars import write_bars
from demix.report.page import write_page
from demix.report.probe import MEASURES, found_at, probe_bars, probe_page, verdict_of
from demix.report.style import number

_MARKER = "probe.json"
_WIDE = 200
_COLOURS = {"surely": "green", "mostly": "yellow", "no": "dim"}


class Joined(NamedTuple):
    """Features and factors row by row, and sentences about rows that were left out."""

    data: Data
    columns: dict[str, np.ndarray]
    unmatched: list[str]


def run_probe(
    features: Path,
    factors: Path,
    *,
    only: str | None,
    kinds: list[str],
    join: str | None,
    names: Path | None,
    key: str | None,
    header: str,
    out: Path | None,
    seed: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Probe features for factors; print, and with ``out`` write numbers, figure and report."""
    terminal = console(errors=True)
    joined = _joined(features, factors, join=join, names=names, key=key, header=header)
    known = list(joined.columns)
    chosen = None if only is None else [_name(text, known) for text in only.split(",")]
    said, periods = _kinds(kinds, known)
    given: dict[str, Any] = {"only": chosen, "kinds": said, "periods": periods, "seed": seed}
    rows = joined.data.array().reshape(len(joined.data), -1)  # those of images are their pixels
    # What cannot be probed is refused before anything is written.
    plan(rows, joined.columns, **given)
    about = {
        "features": f"{features.name} sha256 {joined.data.digest()[:16]}",
        "factors": f"{factors.name} sha256 {file_digest(factors)[:16]}",
    }
    claim = claimed_if(
        out,
        _MARKER,
        command="demix probe",
        inputs=[features, factors, names],
        overwrite=overwrite,
        about=about,
    )
    with claim as (folder, origin):
        for sentence in joined.unmatched:
            print_warning(terminal, sentence)
        with counting_bar(terminal) as count:
            found = probe(rows, joined.columns, callback=count, **given)
        told = {
            "features": rows.shape[1],
            **found.to_dict(),
            "level": LEVEL,
            "unmatched": joined.unmatched,
            "provenance": {**origin, "seed": seed, **provenance()},
        }
        if folder is not None:
            begin(folder / _MARKER, origin)
            _write(folder, told, features, factors)
    if as_json:
        print(json.dumps(told, indent=2))
        return
    _print(found, told)
    if folder is not None:
        typer.echo(f"Wrote {folder}/{_MARKER}, figure.svg, figure.png and report.html")


def _joined(
    features: Path,
    factors: Path,
    *,
    join: str | None,
    names: Path | None,
    key: str | None,
    header: str,
) -> Joined:
    table = read_factors(factors, header=header)
    if join is None:
        if names is not None:
            raise DemixError(
                f"--names are those of {features}; say with --join which column of {factors} holds "
                "the same."
            )
        _check_shared(features, factors, table, header)
        data = read_data(features, key=key, header=header)
        if len(data) != len(table.values):
            raise DemixError(
                f"{features} has {len(data)} rows, but {factors} has {len(table.values)}; join "
                "them by a column of names with --join."
            )
        return Joined(data, columns_of(table), [])
    data, called = _named_rows(features, join, names, key, header)
    matched = match_rows(
        called, _names_of(factors, table, join), called=(str(features), str(factors))
    )
    unmatched = [
        f"{len(left)} of the {total} rows of {one} are not in {other}: {listed(left)}."
        for left, total, one, other in (
            (matched.only_first, len(data), features.name, factors.name),
            (matched.only_second, len(table.values), factors.name, features.name),
        )
        if left
    ]
    columns = {name: column[matched.second] for name, column in columns_of(table).items()}
    columns.pop(join)
    return Joined(data.only(torch.from_numpy(matched.first)), columns, unmatched)


def _check_shared(features: Path, factors: Path, table: KnownFactors, header: str) -> None:
    """Point out a column of text that both files have: it names their rows."""
    shared = set(table_names(features, header) or ()) & set(table.names or ())
    for place, name in enumerate(table.names or ()):
        if name in shared and isinstance(table.values[0, place], str):
            raise DemixError(
                f"{features} and {factors} both have a column {name!r} of text; join their rows by "
                f"it with --join {name}."
            )


def _named_rows(
    features: Path, join: str, names: Path | None, key: str | None, header: str
) -> tuple[Data, list[str]]:
    """Return features and the names of their rows, which are a column or in a file beside them."""
    columns = table_names(features, header)
    if names is None and columns is None:
        raise DemixError(
            f"Rows are joined by name, but {features} has no columns with names; give a file with "
            "the name of each of its rows with --names."
        )
    if names is not None:
        data, called = read_data(features, key=key, header=header), read_names(names)
    else:
        called = read_names(features, join)
        chosen = [name for name in columns or () if name != join]
        data = read_data(features, columns=chosen, header=header)
    if len(called) != len(data):
        raise DemixError(
            f"{features} has {len(data)} rows, but {names or features} has {len(called)} "
            "names; give one for each row."
        )
    return data, called


def _names_of(factors: Path, table: KnownFactors, join: str) -> list[str]:
    if table.names is None:
        raise DemixError(
            f"Rows are joined by the column {join!r}, but the columns of {factors} have no names."
        )
    return read_names(factors, join)


def _kinds(texts: list[str], known: list[str]) -> tuple[dict[str, str], dict[str, float]]:
    """Read ``shape=categorical`` and ``angle=periodic:360``."""
    kinds, periods = {}, {}
    for text in texts:
        name, equals, kind = text.rpartition("=")
        kind, colon, period = kind.partition(":")
        if not equals or (kind == "periodic") != bool(colon):
            raise DemixError(
                "--kind takes a factor and its kind, such as shape=categorical or "
                f"angle=periodic:360, but got {text!r}."
            )
        if _name(name, known) in kinds:
            raise DemixError(
                f"--kind gives the kind of {_name(name, known)!r} twice; give it once."
            )
        kinds[_name(name, known)] = kind
        if colon:
            try:
                periods[_name(name, known)] = float(period)
            except ValueError:
                raise DemixError(f"A period is a number, such as 360, but got {text!r}.") from None
    return kinds, periods


def _name(text: str, known: list[str]) -> str:
    """Return the factor that is meant: its name, or its number from 0 where that is no name."""
    text = text.strip()
    if text not in known and text.isdecimal() and len(text) < 10 and int(text) < len(known):
        return known[int(text)]
    return text


def _write(folder: Path, told: dict[str, Any], features: Path, factors: Path) -> None:
    write_bars(probe_bars(told["factors"], LEVEL), folder)
    page = probe_page(
        told,
        title=f"What {features.name} tells of {factors.name}",
        summary=(
            f"{told['features']} features of {sum(told['rows'].values())} rows, and how well a "
            "linear map reads each factor out of them, beside chance."
        ),
        provenance=told["provenance"],
    )
    write_page(page, folder / "report.html")
    finish(folder / _MARKER, told)


def _print(found: Probe, told: dict[str, Any]) -> None:
    table = Table("factor", "kind", "score", "value", "95 % interval", "chance", "p")
    for heading in ("Bonferroni", "BH"):
        table.add_column(heading)
    tested = [factor for factor in told["factors"] if factor["testable"]]
    for factor in sorted(tested, key=lambda factor: (factor["p"], -factor["value"])):
        shade = _COLOURS[found_at(factor, LEVEL)]
        table.add_row(
            factor["name"],
            factor["kind"],
            MEASURES[factor["measure"]],
            Text(number(factor["value"], 3), style=shade),
            f"{number(factor['low'], 3)} to {number(factor['high'], 3)}",
            number(factor["chance"]["value"], 3),
            *(f"{factor[name]:.2g}" for name in ("p", "bonferroni", "benjamini_hochberg")),
        )
    print_table(table, _WIDE)
    for one in found.factors:
        if one.reason is not None:
            typer.echo(f"Not testable: {one.factor.name}, {one.reason}.")
    rows = told["rows"]
    typer.echo(
        f"{verdict_of(tested, LEVEL)[1]} {rows['train']} rows fitted, {rows['validation']} chose "
        f"penalties, {rows['test']} scored; chance is the mean of {told['permutations']} orders of "
        "the latter."
    )
