"""Table and figure of read-outs: three representations of the same photographs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demix.papers.pages.grouped import GroupedBars, write_grouped_bars
from demix.papers.reizinger2024.balanced import LEVEL
from demix.papers.runner.declaration import Experiment, Model, Row
from demix.report.blocks import Picture

Records = Sequence[dict[str, Any]]
Rows = list[tuple[Row, dict[Model, list[dict[str, Any]]]]]
_NAMES = {
    "trained": "{encoder}",
    "random": "the same net at random initialisation",
    "pixels": "pixels, randomly projected",
}


def factor_lines(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: for each model the resampled and the held-out accuracy."""
    models = _models(rows)
    header = ["row", "factor", "with", "without", *models]
    header += [f"{model}, held out" for model in models]
    lines = []
    for row, cells in rows:
        first = next(records[0] for records in cells.values() if records)
        line = [str(row.number), *row.cells().values(), str(first["positives"])]
        line.append(str(first["images"] - first["positives"]))
        line += [_resampled(cells[model]) for model in models]
        line += [_held(cells[model]) for model in models]
        lines.append(line)
    return header, lines


def factor_notes(records: Records) -> list[str]:
    """Say what was encoded, by what, and how well that knows its classes."""
    trained = next((record for record in records if record["model"] == "trained"), records[0])
    told = f"Trained: {trained['encoder']}, {trained['width']} features of {trained['encoded']}"
    told += " images"
    if trained["feature_seconds"] is not None:
        told += f" in {trained['feature_seconds']:.0f} seconds of one core"
    if trained["top1"]:
        told += (
            f"; it names the class of {100 * trained['top1']['share']:.1f} % of "
            f"{trained['top1']['images']} labelled ones"
        )
    return [f"{told}. {trained['images']} of them are annotated."]


def draw_factors(experiment: Experiment[Row], rows: Rows, folder: Path) -> Picture:
    """Draw the bars, also into files."""
    panel = experiment.panels[0]
    labels = [row.label(row.main[0]) for row, _ in rows]
    bars = []
    for model in _models(rows):
        cells = [cells[model] for _, cells in rows]
        known = next(records[0] for records in cells if records)
        bars.append(
            GroupedBars(
                _NAMES[model].format(encoder=known["encoder"]),
                [100 * _mean(records) if _known(records) else None for records in cells],
                [100 * _sem(records) if _known(records) else None for records in cells],
                [_known(records) and _starred(records) for records in cells],
            )
        )
    svg, _ = write_grouped_bars(panel.title, panel.y_label, labels, bars, folder, chance=50.0)
    return Picture(
        svg.read_text(encoding="utf-8"),
        f"{experiment.title}. Mean over balanced resamplings; bars reach one standard error to "
        "either side, the dashed line is chance. Stars: significant on held-out images, at the "
        "paper's level.",
        alt=f"{experiment.title}: accuracy of each factor for {len(bars)} representations.",
    )


def _models(rows: Rows) -> list[Model]:
    return [model for model in rows[0][0].models if any(cells[model] for _, cells in rows)]


def _known(records: Records) -> bool:
    """Whether a factor could be tested."""
    return bool(records) and records[0]["accuracy"] is not None


def _all(records: Records) -> np.ndarray:
    return np.concatenate([record["accuracies"] for record in records])


def _mean(records: Records) -> float:
    return float(_all(records).mean())


def _sem(records: Records) -> float:
    values = _all(records)
    return float(values.std(ddof=1) / len(values) ** 0.5)


def _p(records: Records, name: str) -> float:
    """Return one p-value; of several, twice the median, which holds whatever their dependence."""
    values = [record[name] for record in records]
    return float(values[0]) if len(values) == 1 else min(1.0, 2 * float(np.median(values)))


def _starred(records: Records) -> bool:
    return _p(records, "p_held") < LEVEL


def _resampled(records: Records) -> str:
    if not _known(records):
        return "too rare" if records else "–"
    above = _mean(records) > 0.5 and _p(records, "p_resampled") < LEVEL
    return f"{100 * _mean(records):.1f} ± {100 * _sem(records):.1f}{'*' if above else ''}"


def _held(records: Records) -> str:
    if not _known(records):
        return "–"
    value = 100 * float(np.mean([record["held_accuracy"] for record in records]))
    return f"{value:.1f}{'*' if _starred(records) else ''}"
