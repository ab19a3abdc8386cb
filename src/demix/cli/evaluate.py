"""``demix evaluate``: scores for a representation from any model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from demix.cli.recovery import all_scores, meaning, recovery_report, scores_as_data
from demix.data import read_data
from demix.files import claim_folder, write_atomic
from demix.provenance import provenance
from demix.report import write_page
from demix.validation import check_pair


def run_evaluate(latents: Path, factors: Path, *, out: Path | None, as_json: bool) -> None:
    """Score two files against each other; print, and with ``out`` write a report."""
    found, true = check_pair(_read(latents), _read(factors))
    folder = None if out is None else claim_folder(out, "scores.json", command="demix evaluate")
    scores = all_scores(found, true)
    origin = {
        "command": "demix evaluate",
        "latents": f"{latents.name} sha256 {_digest(latents)}",
        "factors": f"{factors.name} sha256 {_digest(factors)}",
        **provenance(),
    }
    data = {
        "r2": float(scores["affine_r2"]),
        "mcc": float(scores["mean_correlation"]),
        "samples": len(found),
        "scores": scores_as_data(scores),
        "provenance": origin,
    }
    if folder is not None:
        page = recovery_report(
            title="Scores of a representation",
            summary=(
                f"{found.shape[1]} latents against {true.shape[1]} factors on {len(found)} "
                "samples; every score is fitted on one half of them and taken on the other."
            ),
            latents=found,
            factors=true,
            scores=scores,
            history=[],
            seconds=None,
            provenance=origin,
        )
        write_page(page, folder / "report.html")
        write_atomic(folder / "scores.json", json.dumps(data, indent=2) + "\n")
    if as_json:
        print(json.dumps(data, indent=2))
        return
    table = Table("score", "value", "chance", "what it certifies")
    for name, score in scores.items():
        table.add_row(name, f"{score:.4f}", f"{score.baseline:.4f}", meaning(name, score))
    console = Console()
    console.print(table)
    if folder is not None:
        typer.echo(f"Wrote {folder}/scores.json and report.html")


def _read(path: Path) -> np.ndarray:
    return np.concatenate([block.numpy() for _, block in read_data(path).blocks()])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
