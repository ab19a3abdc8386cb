"""Tables of results beside the paper's figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, reason
from demix._support.files import write_atomic
from demix.papers.pages.table import table_markdown, table_page
from demix.papers.reizinger2024.factor_table import factor_lines, factor_notes
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.reizinger2024.readout_table import accuracies, readout_lines
from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Experiment, Model, Row, varying
from demix.papers.runner.figure import draw
from demix.report.page import write_page

Records = Sequence[dict[str, Any]]
Rows = list[tuple[Row, dict[Model, list[dict[str, Any]]]]]
SCORES = {
    "r2": "R²",
    "r": "r",
    "accuracy": "accuracy",
    "mcc": "MCC",
    "r2_train": "R², training images",
    "mcc_train": "MCC, training images",
    "r2_rows": "R² of rows, new clusters",
    "r2_rows_seen": "R² of rows, seen clusters",
    "orthogonality": "orthogonality error",
    "singular_mae": "MAE",
    "logit_size": "size of logits",
}
# Everything else is shown in percent.
_PLAIN = {"singular_mae", "logit_size"}
_ORDER = ("supervised", "identity")


def write_tables(experiment: Experiment[Row], records: Records, folder: Path) -> None:
    """Write ``table.md``, ``table.html`` and, for a figure, its files into ``folder``."""
    try:
        if records:
            _write(experiment, records, folder)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, DemixError):
            raise
        raise DemixError(
            f"The results in {folder} make no table ({type(error).__name__}: {reason(error)}); "
            "choose another folder."
        ) from error


def _write(experiment: Experiment[Row], records: Records, folder: Path) -> None:
    title = f"{experiment.title} ({records[0]['scale']} scale)"
    rows = by_row(experiment, records)
    factors = [(row, cells) for row, cells in rows if isinstance(row, ReadOutRow)]
    if isinstance(experiment.rows[0], FactorRow):
        header, lines = factor_lines(rows)
    else:
        header, lines = readout_lines(factors) if factors else _lines(experiment, rows)
    notes = _notes(experiment, records) + ([accuracies(factors)] if factors else [])
    write_atomic(folder / "table.md", table_markdown(title, header, lines, notes))
    beside = " beside the published ones" if "(paper)" in " ".join(header) else ""
    page = table_page(
        title,
        f"{experiment.source}. Held-out scores{beside}.",
        header,
        lines,
        draw(experiment, rows, folder),
        notes,
        records[0]["provenance"],
    )
    write_page(page, folder / "table.html")


def by_row(experiment: Experiment[Row], records: Records) -> Rows:
    """Return the rows that have records, and their records by model."""
    cells: dict[int, dict[Model, Any]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cells[record["row"]][record["model"]].append(record)
    return [(row, cells[row.number]) for row in experiment.rows if row.number in cells]


def _lines(experiment: Experiment[Row], rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Return header and lines, a line for each main model of a row.

    They show the process, ours (paper) for each score, and the same of the models that are there
    to compare with.
    """
    described = varying(experiment)
    several = any(row.main[1:] for row in experiment.rows)
    others = _others(rows)
    mains = {model for row, _ in rows for model in row.main}
    scores = {model: _scores_of(experiment, rows, {model}) for model in others}
    main_scores = _scores_of(experiment, rows, mains)
    # Beside others a main model needs its name; alone it is named in its line or by the row.
    prefix = f"{rows[0][0].main[0]} " if others else ""
    header = ["row", *described, *(["model"] if several else [])]
    header += [f"{prefix}{_heading(experiment, mains, score)}" for score in main_scores]
    header.append(f"{prefix}nats above optimum")
    header += [
        f"{model} {_heading(experiment, {model}, score)}"
        for model in others
        for score in scores[model]
    ]
    header.append("seconds")
    lines = []
    for row, cells in rows:
        for model in (model for model in row.main if cells[model]):
            line = [str(row.number), *(row.cells()[name] for name in described)]
            line += [model] if several else []
            line += [_beside(cells[model], row, model, score) for score in main_scores]
            line.append(_mean(cells[model], "nats_above_optimum", 3))
            line += [_beside(cells[o], row, o, score) for o in others for score in scores[o]]
            line.append(_mean(cells[model], "seconds", 0))
            lines.append(line)
    return header, lines


def _others(rows: Rows) -> list[Model]:
    """Return the models that were run to compare with, in the order of their columns."""
    run = {model for row, cells in rows for model in cells if model not in row.main}
    return [model for model in _ORDER if model in run]


def _scores_of(experiment: Experiment[Row], rows: Rows, models: set[Model]) -> list[str]:
    """Return the scores that any of the models has in any row."""
    return [
        score
        for score in experiment.scores
        if any(
            record[score] is not None
            for _, cells in rows
            for model in models
            for record in cells[model]
        )
    ]


def _heading(experiment: Experiment[Row], models: set[Model], score: str) -> str:
    published = any(row.published(model, score) for row in experiment.rows for model in models)
    return SCORES[score] + (" (paper)" if published else "")


def _mean(cells: Records, key: str, digits: int) -> str:
    values = [record[key] for record in cells if record[key] is not None]
    return f"{np.mean(values):.{digits}f}" if values else "–"


def _beside(cells: Records, row: Row, model: Model, score: str) -> str:
    """Write ours, and the paper's in brackets."""
    factor, digits = (1, 3) if score in _PLAIN else (100, 2)
    values = [factor * record[score] for record in cells if record[score] is not None]
    if not values:
        return "–"
    spread = float(np.std(values, ddof=1)) if values[1:] else None
    text = _with_spread(float(np.mean(values)), spread, digits)
    figure = row.published(model, score)
    return text if figure is None else f"{text} ({_with_spread(*figure, digits)})"


def _with_spread(mean: float, spread: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def _notes(experiment: Experiment[Row], records: Records) -> list[str]:
    seeds = sorted({record["seed"] for record in records})
    scale = records[0]["scale"]
    origins = [record["provenance"] for record in records]
    commits = sorted({origin.get("commit", "unknown")[:12] for origin in origins})
    cores = sorted({str(origin["cores"]) for origin in origins})
    run = [record for record in records if "same_run_as_row" not in record]
    minutes = sum(record["seconds"] for record in run) / 60
    command = f"demix reproduce {experiment.name} --seeds {','.join(map(str, seeds))} "
    rows = sorted({record["row"] for record in records})
    if len(rows) < len(experiment.rows):
        command += f"--rows {','.join(map(str, rows))} "
    files = " --data FILE --data FILE ..." if experiment.data else ""
    read_out = isinstance(experiment.rows[0], FactorRow)
    work = "read-outs in all on one of" if read_out else "training in all on"
    common = {
        name: text
        for name, text in experiment.rows[0].cells().items()
        if name not in varying(experiment) and text != "–"
    }
    return [
        f"Regenerate with `{command}--scale {scale}{files} --out DIR`.",
        f"Seeds {', '.join(map(str, seeds))}; {minutes:.0f} minutes of {work} "
        f"{'/'.join(cores)} cores; commit {', '.join(commits)}.",
        *(factor_notes(records) if read_out else []),
        *(["Smoke scale shrinks dimensions, clusters and data."] if scale == "smoke" else []),
        *([f"In all rows: {', '.join(f'{k} {v}' for k, v in common.items())}."] if common else []),
        *experiment.notes,
    ]
