"""Tables of results beside the paper's figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demix.distributions import VonMisesFisher
from demix.experiments import Experiment, Model, Row, scale_named
from demix.files import write_atomic
from demix.report import (
    Figure,
    comparison_figure,
    concentration_curve,
    table_markdown,
    table_page,
    write_page,
)
from demix.spaces import Sphere

_SPACES = {"sphere": "Sphere", "box": "Box", "real": "Unbounded"}
_MODELS: tuple[Model, ...] = ("unsupervised", "supervised", "identity")
Records = Sequence[dict[str, Any]]


def write_tables(experiment: Experiment, records: Records, folder: Path) -> None:
    """Write ``table.md`` and ``table.html`` of all ``records`` into ``folder``."""
    if not records:
        return
    title = f"{experiment.title} ({records[0]['scale']} scale)"
    header, lines = _lines(experiment, records)
    notes = _notes(experiment, records)
    write_atomic(folder / "table.md", table_markdown(title, header, lines, notes))
    page = table_page(
        title,
        f"{experiment.source}. Held-out scores in percent beside the published ones.",
        header,
        lines,
        _figure(experiment, records),
        notes,
        records[0]["provenance"],
    )
    write_page(page, folder / "table.html")


def _lines(experiment: Experiment, records: Records) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: the process, the model, and ours (paper) for each type of model."""
    shown = [model for model in _MODELS if any(record["model"] == model for record in records)]
    score = {"r2": "R²", "mcc": "MCC"}[experiment.score]
    header = ["row", "process", "model", "matched"]
    header += [f"{model} {score} (paper)" for model in shown]
    header += ["nats above optimum", "seconds"]
    lines = []
    for row, cells in _by_row(experiment, records):
        line = [
            str(row.number),
            f"{_SPACES[row.space]}: {row.marginal}, {row.conditional}",
            f"{_SPACES[row.model_space]}: {row.assumed}",
            "yes" if row.matched else "no",
        ]
        line += [_beside(cells[model], row, model, experiment.score) for model in shown]
        main = cells["unsupervised"]
        above = [r["nats_above_optimum"] for r in main if r["nats_above_optimum"] is not None]
        line.append(f"{np.mean(above):.3f}" if above else "–")
        line.append(f"{np.mean([r['seconds'] for r in main]):.0f}" if main else "–")
        lines.append(line)
    return header, lines


def _by_row(experiment: Experiment, records: Records) -> list[tuple[Row, dict[str, Any]]]:
    cells: dict[int, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cells[record["row"]][record["model"]].append(record)
    return [(row, cells[row.number]) for row in experiment.rows if row.number in cells]


def _beside(cells: Records, row: Row, model: Model, score: str) -> str:
    """Write ours in percent, and the paper's in brackets."""
    values = [100 * record[score] for record in cells]
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    figure = row.paper.get(model)
    published = "" if figure is None else f" ({figure[0]:.2f} ± {figure[1]:.2f})"
    return f"{np.mean(values):.2f}{spread}{published}"


def _notes(experiment: Experiment, records: Records) -> list[str]:
    seeds = sorted({record["seed"] for record in records})
    scale = records[0]["scale"]
    origins = [record["provenance"] for record in records]
    commits = sorted({origin.get("commit", "unknown")[:12] for origin in origins})
    cores = sorted({str(origin["cores"]) for origin in origins})
    minutes = sum(record["seconds"] for record in records) / 60
    command = f"demix reproduce {experiment.name} --seeds {','.join(map(str, seeds))} "
    return [
        f"Regenerate with `{command}--scale {scale} --out DIR`.",
        f"Seeds {', '.join(map(str, seeds))}; {minutes:.0f} minutes of training in all on "
        f"{'/'.join(cores)} cores; commit {', '.join(commits)}.",
        "Scores in percent. Ours: fitted on one half of fresh samples, scored on the other. The "
        "paper fits and scores on the same samples; mean and standard deviation over its 5 seeds.",
    ]


def _figure(experiment: Experiment, records: Records) -> Figure | None:
    """Draw the marginal figure, or ours beside the paper's where the paper gives numbers."""
    rows = _by_row(experiment, records)
    if all(row.paper.get("unsupervised") is None for row, _ in rows):
        dim = scale_named(records[0]["scale"]).dim
        points = [
            {
                "kappa": row.marginal.width,
                "score": 100 * np.mean([r[experiment.score] for r in cells["unsupervised"]]),
                "difference": VonMisesFisher(Sphere(dim), row.marginal.width).mass_difference()
                if row.marginal.width
                else 0.0,
            }
            for row, cells in rows
        ]
        return Figure(
            concentration_curve(points, experiment.rows[0].conditional.width),
            "Score against the concentration of the marginal, and the probability mass by which "
            "the marginal differs from uniform. Dotted: the concentration of the conditional.",
            alt="Score and mass difference against the concentration of the marginal.",
        )
    bars = []
    for row, cells in rows:
        values = [100 * record[experiment.score] for record in cells["unsupervised"]]
        figure = row.paper.get("unsupervised")
        if values and figure:
            bars.append(
                {
                    "label": f"{row.number}. {_SPACES[row.space]}, {row.conditional} → "
                    f"{_SPACES[row.model_space]}, {row.assumed}",
                    "ours": np.mean(values),
                    "ours_std": np.std(values, ddof=1) if len(values) > 1 else None,
                    "paper": figure[0],
                    "paper_std": figure[1],
                }
            )
    return comparison_figure(bars) if bars else None
