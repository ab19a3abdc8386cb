"""``demix evaluate``: scores for a representation from any model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.table import Table

from demix._support.errors import DemixError
from demix._support.files import file_digest
from demix._support.provenance import provenance
from demix.cli.bars import counting_bar
from demix.cli.claims import begin, claimed_if, finish
from demix.cli.console import console, print_table
from demix.cli.recovery import meaning, recovery_report, scores_as_data
from demix.data.factors import read_factors
from demix.data.reading import read_data
from demix.metrics.factors import Factors, check_factors
from demix.metrics.registry import all_scores, label
from demix.metrics.score import Score
from demix.report.blocks import Page
from demix.report.page import write_page

_MARKER = "scores.json"
_WIDE = 220


def run_evaluate(
    latents: Path,
    factors: Path,
    *,
    categorical: str | None,
    header: str,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Score two files against each other; print, and with ``out`` write a report."""
    known = read_factors(factors, header=header)
    width = known.values.shape[1] if known.values.ndim == 2 else 0
    names = list(known.names or [f"factor {i + 1}" for i in range(width)])
    found, true = check_factors(
        _read(latents, header), known.values, _columns(categorical, known.names, width)
    )
    about = {
        "latents": f"{latents.name} sha256 {file_digest(latents)[:16]}",
        "factors": f"{factors.name} sha256 {file_digest(factors)[:16]}",
    }
    claim = claimed_if(
        out,
        _MARKER,
        command="demix evaluate",
        inputs=[latents, factors],
        overwrite=overwrite,
        about=about,
    )
    with claim as (folder, origin), counting_bar(console(errors=True)) as count:
        scores = all_scores(
            found,
            true.values,
            categorical=np.flatnonzero(true.categorical).tolist(),
            callback=count,
        )
        data: dict[str, Any] = {
            "r2": _value(scores, "affine_r2"),
            "mcc": _value(scores, "mean_correlation"),
            "accuracy": _value(scores, "linear_accuracy"),
            "samples": len(found),
            "categorical": [names[i] for i in np.flatnonzero(true.categorical)],
            "scores": scores_as_data(scores, names, true.categorical),
            "provenance": {**origin, **provenance()},
        }
        if folder is not None:
            page = _page(found, true, scores, names, data["provenance"])
            begin(folder / _MARKER, origin)
            write_page(page, folder / "report.html")
            finish(folder / _MARKER, data)
    if as_json:
        print(json.dumps(data, indent=2))
        return
    _print(scores)
    if folder is not None:
        typer.echo(f"Wrote {folder}/scores.json and report.html")


def _page(
    latents: np.ndarray,
    factors: Factors,
    scores: dict[str, Score],
    names: list[str],
    origin: dict[str, Any],
) -> Page:
    numbers = np.flatnonzero(~factors.categorical)
    kinds = f"{len(numbers)} continuous and {factors.number - len(numbers)} categorical factors"
    return recovery_report(
        title="Scores of a representation",
        summary=(
            f"{latents.shape[1]} latents against {kinds} on {len(latents)} samples. Whatever is "
            "fitted is fitted on one half of them and scored on the other."
        ),
        latents=latents,
        factors=factors.values[:, numbers],
        scores=scores,
        history=[],
        seconds=None,
        provenance=origin,
        names=[names[i] for i in numbers],
    )


def _print(scores: dict[str, Score]) -> None:
    table = Table("score", "value", "95 % interval", "chance", "what it certifies", "leaves open")
    for name, score in scores.items():
        table.add_row(
            label(name),
            f"{score:.4f}",
            f"{score.low:.4f} to {score.high:.4f}",
            f"{score.baseline:.4f}",
            meaning(name, score),
            score.leaves_open,
        )
    print_table(table, _WIDE)


def _columns(text: str | None, names: tuple[str, ...] | None, width: int) -> list[int] | None:
    """Read which columns are categories: names or numbers, or none of them."""
    if text is None or text.strip() == "none":
        return None if text is None else []
    columns = []
    for part in (part.strip() for part in text.split(",")):
        if names is not None and names.count(part) == 1:
            columns.append(names.index(part))
        elif part.isdecimal() and len(part) < 10 and int(part) < width:
            columns.append(int(part))
        else:
            listed = ", ".join(names or [f"0 to {width - 1}"])
            raise DemixError(
                f"--categorical takes columns of the factors, {listed}, or none, but got {part!r}."
            )
    return columns


def _value(scores: dict[str, Score], name: str) -> float | None:
    return float(scores[name]) if name in scores else None


def _read(path: Path, header: str) -> np.ndarray:
    return read_data(path, header=header).array()
