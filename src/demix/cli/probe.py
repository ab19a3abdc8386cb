"""``demix probe``: which known factors a linear map predicts from a representation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demix._support.errors import DemixError, demix_errors
from demix.cli import options

if TYPE_CHECKING:
    import numpy as np

    from demix.data.data import Data

_WIDE = 200
_COLOURS = {"surely": "green", "mostly": "yellow", "no": "dim"}


@options.app.command(
    epilog="Example:  demix probe features.npy factors.csv --out probed\n\n"
    "Example:  demix probe features.parquet factors.csv --join file --kind angle=periodic:360\n\n"
    "Example:  demix probe features.npy factors.csv --blocks subjects.txt"
)
def probe(
    features: Annotated[Path, typer.Argument(help=options.HELPS["features"])],
    factors: Annotated[Path, typer.Argument(help=options.HELPS["factors"])],
    only: Annotated[str | None, typer.Option("--factors", help=options.HELPS["only"])] = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind", help=options.HELPS["kinds"])] = None,
    join: Annotated[str | None, typer.Option(help=options.HELPS["join"])] = None,
    names: Annotated[Path | None, typer.Option(help=options.HELPS["names"])] = None,
    blocks: options.BlocksOption = None,
    key: options.Key = None,
    header: options.Header = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for numbers, figure and report.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of parts, null and intervals.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Find which factors a linear map predicts from any representation better than by chance.

    Numbers by ridge regression, categories by logistic regression, on held-out rows; each with an
    interval, an exact permutation null, and Bonferroni and Benjamini-Hochberg control.
    """
    options.check_given(features, factors, names)
    import torch

    from demix._support.provenance import origin_of, provenance
    from demix.cli.claims import claimed_if
    from demix.cli.console import console, print_json, print_lines, print_warning
    from demix.cli.progress import counting_bar
    from demix.data.reading import input_digest
    from demix.metrics.probes.probe import LEVEL
    from demix.metrics.probes.probe import probe as probe_rows
    from demix.report.blocks import write_page
    from demix.report.probe import probe_page, write_bars

    terminal = console(errors=True)
    data, columns, unmatched, matched = _joined(features, factors, join, names, key, header)
    alike, read = options.read_blocks(blocks)
    if matched is not None:
        if read and len(alike) != len(data):
            raise DemixError(
                f"{blocks} must have a block for each of {len(data)} rows, but has {len(alike)}."
            )
        alike = alike[matched] if read else alike
        data = data.only(torch.from_numpy(matched))
    known = list(columns)
    given_kinds, periods = _kinds(kinds or [], known)
    rows = data.array().reshape(len(data), -1)  # those of images are their pixels
    about = {
        "features": f"{features.name} sha256 {data.digest()[:16]}",
        "factors": f"{factors.name} sha256 {input_digest(factors)[:16]}",
    }
    about |= {} if blocks is None else {"blocks": blocks}
    inputs = [features, factors, names, *read]
    with claimed_if("probe", out, "probe.json", inputs, overwrite=overwrite, about=about) as claim:
        with counting_bar(terminal) as count:
            chosen = None if only is None else [_name(text, known) for text in only.split(",")]
            rules: dict[str, Any] = {"kinds": given_kinds, "periods": periods, "blocks": alike}
            found = probe_rows(rows, columns, only=chosen, callback=count, seed=seed, **rules)
        for sentence in unmatched:
            print_warning(terminal, sentence)
        result = {
            "features": rows.shape[1],
            **found.to_dict(),
            "level": LEVEL,
            "unmatched": unmatched,
            "provenance": {**origin_of(about), "seed": seed, **provenance()},
        }
        if claim is not None:
            claim.begin()
            write_bars(result["factors"], LEVEL, claim.folder)
            page = probe_page(result, features=features.name, factors=factors.name)
            write_page(page, claim.folder / "report.html")
            claim.finish(result)
    if as_json:
        print_json(result)
        return
    _print(result)
    if claim is not None:
        print_lines(f"Wrote {claim.folder}/{claim.marker}, figure.svg, figure.png and report.html")


def _joined(
    features: Path, factors: Path, by: str | None, names: Path | None, key: str | None, header: str
) -> tuple[Data, dict[str, np.ndarray], list[str], np.ndarray | None]:
    """Return features, the factors of some of them, and what is to be said of other rows.

    The last are the numbers of the rows of features that were matched by name; None if all were
    by number.
    """
    from demix._support.errors import listed
    from demix.data.factors import check_order, read_factors
    from demix.data.names import match_rows, read_names, table_names
    from demix.data.reading import read_data
    from demix.metrics.probes.factor import columns_of

    table, own = read_factors(factors, header=header), table_names(features, header)
    if by is None:
        if names is not None:
            raise DemixError(
                f"--names are those of {features}; say with --join which column of {factors} holds "
                "the same."
            )
        for place, name in enumerate(table.names or ()):
            if name in (own or ()) and isinstance(table.values[0, place], str):
                raise DemixError(
                    f"{features} and {factors} both have a column {name!r} of text; join their "
                    f"rows by it with --join {name}."
                )
        data = read_data(features, key=key, header=header)
        if len(data) != len(table.values):
            raise DemixError(
                f"{features} has {len(data)} rows, but {factors} has {len(table.values)}; join "
                "them by a column of names with --join."
            )
        check_order(data, table, factors)
        return data, columns_of(table), [], None
    if names is None and own is None:
        raise DemixError(
            f"Rows are joined by name, but {features} has no columns with names; give a file with "
            "the name of each of its rows with --names."
        )
    called = read_names(features, by) if names is None else read_names(names)
    chosen = [name for name in own or () if name != by] if names is None else None
    data = read_data(features, key=key, columns=chosen, header=header)
    if len(called) != len(data):
        raise DemixError(
            f"{features} has {len(data)} rows, but {names or features} has {len(called)} "
            "names; give one for each row."
        )
    if table.names is None:
        raise DemixError(f"Rows are joined by {by!r}, but columns of {factors} have no names.")
    both = match_rows(called, read_names(factors, by), called=(str(features), str(factors)))
    unmatched = [
        f"{len(left)} of the {total} rows of {one.name} are not in {other.name}: {listed(left)}."
        for left, total, one, other in (
            (both.only_first, len(data), features, factors),
            (both.only_second, len(table.values), factors, features),
        )
        if left
    ]
    columns = {name: x[both.second] for name, x in columns_of(table).items() if name != by}
    return data, columns, unmatched, both.first


def _kinds(texts: list[str], known: list[str]) -> tuple[dict[str, str], dict[str, float]]:
    """Read ``shape=categorical`` and ``angle=periodic:360``."""
    kinds, periods = {}, {}
    for text in texts:
        given, equals, kind = text.rpartition("=")
        name = _name(given, known)
        kind, colon, period = kind.partition(":")
        if not equals or (kind == "periodic") != bool(colon):
            raise DemixError(
                "--kind takes a factor and its kind, such as shape=categorical or "
                f"angle=periodic:360, but got {text!r}."
            )
        if name in kinds:
            raise DemixError(f"--kind gives the kind of {name!r} twice; give it once.")
        kinds[name] = kind
        if colon:
            problem = f"A period is a number, such as 360, but got {text!r}"
            with demix_errors(problem, "write one"):
                periods[name] = float(period)
    return kinds, periods


def _name(text: str, known: list[str]) -> str:
    place = options.place_of(text, known)
    return text.strip() if place is None else known[place]


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from demix.cli.console import print_lines, print_table
    from demix.report.probe import found_at, numbers_of, tested_of, verdict_of
    from demix.report.words import said

    tested = tested_of(found)
    shown = numbers_of(tested)
    table = Table(*shown.header[:-1])
    for factor, (*cells, _) in zip(tested, shown.rows, strict=True):
        style = _COLOURS[found_at(factor, found["level"])]
        table.add_row(*cells[:-6], Text(cells[-6], style=style), *cells[-5:])
    print_table(table, _WIDE)
    for factor in found["factors"]:
        if not factor["testable"]:
            print_lines(f"Not testable: {factor['name']}, {factor['reason']}.")
    words = said("probe printed", **found["rows"], **found)
    print_lines(f"{verdict_of(tested, found['level']).text} {words['text']}")
