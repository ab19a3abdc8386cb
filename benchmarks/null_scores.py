"""``python -m benchmarks.null_scores``: do intervals of scores cover chance, where that is all?

Latents and factors are independent autoregressions, so that every score is what chance gives. Its
95 % interval should hold its chance level in 95 % of trials, however slowly both move.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.signal import lfilter

from demix._support.files import write_atomic
from demix._support.outputs import claim_folder
from demix._support.provenance import provenance
from demix.cli import run
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.commands.reproduce import numbers

_COMMAND = "python -m benchmarks.null_scores"
_MARKER = "null_scores.json"
SCORES = {"affine R²": affine_r2, "MCC (Pearson)": mean_correlation}
PHIS = (0.0, 0.5, 0.9, 0.99, 0.999)


def autoregression(random: np.random.Generator, rows: int, dim: int, phi: float) -> np.ndarray:
    """Return stationary series ``(rows, dim)`` whose neighbours correlate by ``phi``."""
    noise = random.normal(size=(rows, dim))
    noise[0] /= (1 - phi**2) ** 0.5
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=0))


def trial(rows: int, dim: int, phi: float, seed: int) -> dict[str, list[float]]:
    """Return value, ends of the interval and chance level of scores of independent series."""
    random = np.random.default_rng(seed)
    latents, factors = (autoregression(random, rows, dim, phi) for _ in range(2))
    found = {name: score(latents, factors, blocks="auto") for name, score in SCORES.items()}
    return {name: [float(x), x.low, x.high, x.baseline] for name, x in found.items()}


def covered(trials: Sequence[dict[str, list[float]]], name: str) -> float:
    """Return the share of trials whose interval holds the chance level."""
    return float(
        np.mean([low <= chance <= high for _, low, high, chance in (t[name] for t in trials)])
    )


def table(cells: Sequence[dict[str, Any]]) -> str:
    """Return the cells as a table in Markdown."""
    heads = [f"{name}: {what}" for name in SCORES for what in ("value", "covered")]
    lines = [
        "# Intervals that hold the chance level, of independent autoregressions",
        "",
        " | ".join(["| rows", "latents", "autocorrelation", *heads]) + " |",
        "|" + " ---: |" * (3 + len(heads)),
    ]
    for cell in cells:
        parts = [cell["rows"], cell["latents"], cell["phi"]]
        for name in SCORES:
            parts += [f"{cell['median'][name]:.2f}", f"{100 * cell['covered'][name]:.1f} %"]
        lines.append(f"| {' | '.join(map(str, parts))} |")
    again = f"Regenerate with `{_COMMAND} --out results/null_scores`."
    lines += ["", f"Medians and shares of {cells[0]['trials']} trials. {again}"]
    return "\n".join(lines) + "\n"


def null_scores(
    out: Annotated[Path, typer.Option(help=f"Folder for {_MARKER} and table.md.")],
    seeds: Annotated[str, typer.Option(help="A seed for each trial.")] = "1000-1199",
    rows: Annotated[str, typer.Option(help="Numbers of rows.")] = "500,2000",
    latents: Annotated[str, typer.Option(help="Numbers of latents, and of factors.")] = "3,10",
    jobs: Annotated[int, typer.Option(help="How many to run at once.")] = 2,
) -> None:
    """Count how often 95 % intervals hold the chance level of independent series."""
    chosen = numbers(seeds, "--seeds")
    folder = claim_folder(out, _MARKER, command=_COMMAND)
    cells: list[dict[str, Any]] = []
    sizes = product(numbers(rows, "--rows"), numbers(latents, "--latents"), PHIS)
    with ProcessPoolExecutor(jobs) as workers:
        for count, dim, phi in sizes:
            trials = list(workers.map(partial(trial, count, dim, phi), chosen))
            cell = {"rows": count, "latents": dim, "phi": phi, "trials": len(trials)}
            medians = {name: float(np.median([t[name][0] for t in trials])) for name in SCORES}
            shares = {name: covered(trials, name) for name in SCORES}
            cells.append({**cell, "median": medians, "covered": shares})
            found = {"cells": cells, "provenance": {"command": _COMMAND, **provenance()}}
            write_atomic(folder / _MARKER, json.dumps(found, indent=1) + "\n")
            write_atomic(folder / "table.md", table(cells))
            typer.echo(f"{cell}: {shares}")


if __name__ == "__main__":
    run(partial(typer.run, null_scores))
