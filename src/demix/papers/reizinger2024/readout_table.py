"""The table and the figure of read-outs: a line for each factor of each data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demix.papers.pages.series import Series, Subplot
from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Model

Records = Sequence[dict[str, Any]]
_HEADINGS = {
    "input": "input",
    "untrained mlp": "untrained MLP",
    "mlp": "MLP",
    "untrained cnn": "untrained CNN",
    "cnn": "CNN",
}


def readout_lines(
    rows: Sequence[tuple[ReadOutRow, dict[Model, list[dict[str, Any]]]]],
) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: r of each model, the paper's in brackets, and R² of the networks."""
    models = [model for model in _HEADINGS if any(cells[model] for _, cells in rows)]
    mains = [model for model in models if any(model in row.main for row, _ in rows)]
    header = ["row", "data", "factor", "kind"]
    for model in models:
        paper = any(row.figure(f, model) is not None for row, _ in rows for f in row.paper)
        header.append(f"{_HEADINGS[model]} r" + (" (paper)" if paper else ""))
    header += [f"{_HEADINGS[model]} R²" for model in mains]
    lines = []
    for row, cells in rows:
        for factor, kind in _factors(row, cells).items():
            line = [str(row.number), row.title, factor, kind]
            line += [
                _cell(cells[model], factor, "r", row.figure(factor, model)) for model in models
            ]
            line += [_cell(cells[model], factor, "r2") for model in mains]
            lines.append(line)
    return header, lines


def _factors(row: ReadOutRow, cells: dict[Model, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the kinds of all factors, the one that was trained on first."""
    kinds = {
        factor: found["kind"]
        for records in cells.values()
        for record in records
        for factor, found in record["readouts"].items()
    }
    first = {row.trained_on: f"{kinds[row.trained_on]}, trained on"}
    return first | {factor: kind for factor, kind in kinds.items() if factor != row.trained_on}


def _cell(records: Records, factor: str, score: str, paper: float | None = None) -> str:
    """Write value and interval, means over seeds, and the paper's in brackets."""
    found = _mean(records, factor, score)
    if found is None:
        return "–"
    value, low, high = found
    text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
    return text if paper is None else f"{text} ({paper:.2f})"


def _mean(records: Records, factor: str, score: str) -> np.ndarray | None:
    """Return value, lower and upper end of a score, means over seeds."""
    found = [r["readouts"][factor][score] for r in records if factor in r["readouts"]]
    return np.mean(found, axis=0) if found else None


def readout_panels(
    rows: Sequence[tuple[ReadOutRow, dict[Model, list[dict[str, Any]]]]],
) -> list[Subplot]:
    """Return a panel for each data set: r of all factors, with its interval, for each model."""
    panels = []
    for row, cells in rows:
        factors, series = list(_factors(row, cells)), []
        for model, name in _HEADINGS.items():
            found = {f: _mean(cells[model], f, "r") for f in factors}
            points = {factor: ends for factor, ends in found.items() if ends is not None}
            if points:
                sides = [max(high - r, r - low) for r, low, high in points.values()]
                series.append(Series(name, list(points), [r for r, _, _ in points.values()], sides))
        panels.append(
            Subplot(f"{row.title}, trained on {row.trained_on}", "", "Pearson's r", series)
        )
    return panels


def accuracies(rows: Sequence[tuple[ReadOutRow, dict[Model, list[dict[str, Any]]]]]) -> str:
    """Say how well the classifiers do what they were trained for."""
    told = []
    for row, cells in rows:
        means = {
            model: np.mean([record["accuracy"] for record in cells[model]])
            for model in row.main
            if cells[model]
        }
        shares = ", ".join(
            f"{_HEADINGS[model]} {100 * mean:.1f} %" for model, mean in means.items()
        )
        told.append(f"{row.title} {shares}")
    return f"Accuracy of the classifiers on images held out: {'; '.join(told)}."
