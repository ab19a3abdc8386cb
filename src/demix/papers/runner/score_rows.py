"""Rows that are scored like the paper's: our scores next to the published ones."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from demix.papers.pages.curves import comparison_bars
from demix.papers.pages.panels import Points, Subplot, write_panels
from demix.papers.runner.experiment import (
    Experiment,
    Lines,
    Panel,
    Point,
    Published,
    Records,
    Results,
    Row,
    Shown,
)
from demix.report.blocks import Figure, Picture

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
_PLAIN = {"singular_mae", "logit_size"}  # everything else is shown in percent
_BASELINES = ("supervised", "identity")


@dataclass(frozen=True)
class ScoreRow(Row):
    """A row whose models have one value for each score.

    ``paper`` holds each model's published figures by score, ``points`` where a figure shows it.
    """

    paper: Mapping[str, Any] = field(default_factory=dict, repr=False, kw_only=True)
    points: tuple[Point, ...] = field(default=(), repr=False, kw_only=True)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the row runs."""
        return tuple(self.paper)

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        return ", ".join(self.columns().values())

    def published(self, model: str, score: str) -> Published | None:
        """Return the paper's figure for a score of a model, in percent."""
        return self.paper.get(model, {}).get(score)

    @classmethod
    def table(cls, experiment: Experiment, results: Results[Self]) -> Lines:
        """Return header and lines: process, ours (paper) for each score, the same of baselines."""
        described = experiment.varying()
        several = any(row.main[1:] for row in experiment.rows)
        run = {model for row, by_model in results for model in by_model if model not in row.main}
        mains = {model for row, _ in results for model in row.main}
        main_scores = _scores_of(experiment, results, mains)
        beside = [
            (model, score)
            for model in _BASELINES
            if model in run
            for score in _scores_of(experiment, results, {model})
        ]
        # Next to baselines a main model needs its name; alone, the line or the row names it.
        prefix = f"{results[0][0].main[0]} " if run & {*_BASELINES} else ""
        header = ["row", *described, *(["model"] if several else [])]
        header += [f"{prefix}{_heading(experiment, mains, score)}" for score in main_scores]
        header.append(f"{prefix}nats above optimum")
        header += [f"{model} {_heading(experiment, {model}, score)}" for model, score in beside]
        lines = []
        for row, by_model in results:
            for model in (model for model in row.main if by_model[model]):
                records = by_model[model]
                line = [str(row.number), *(row.columns()[name] for name in described)]
                line += [model] if several else []
                line += [_ours_and_paper(records, row, model, score) for score in main_scores]
                line.append(_mean(records, "nats_above_optimum", 3))
                line += [_ours_and_paper(by_model[base], row, base, s) for base, s in beside]
                lines.append([*line, _mean(records, "seconds", 0)])
        return [*header, "seconds"], lines

    @classmethod
    def figure(cls, experiment: Experiment, results: Results[Self], folder: Path) -> Shown:
        """Return the panels of a figure, also written to files, or a dot plot of a table."""
        if experiment.panels:
            panels = [
                Subplot(panel.title, panel.x_label, panel.y_label, series, log_x=panel.log_x)
                for panel in experiment.panels
                if (series := _series(panel, results))
            ]
            words = "Mean over seeds; bands reach one standard deviation to either side."
            return panels_picture(experiment, panels, words, folder) if panels else None
        bars = []
        for row, by_model in results:
            for model in row.main:
                ours = _measured(by_model[model], experiment.score)
                paper = row.published(model, experiment.score)
                if ours and paper:
                    names = ("label", "ours", "ours_std", "paper", "paper_std")
                    label = f"{row.number}. {row.label(model)}"
                    bars.append(dict(zip(names, (label, *ours, *paper), strict=True)))
        if not bars:
            return None
        return Figure(
            comparison_bars(bars),
            "Our scores next to those printed in the paper. Bars reach one standard deviation to "
            "either side; the axis spans only the range of the scores.",
            alt=f"Dot plot of {len(bars)} scores, ours next to the paper's.",
        )


def panels_picture(
    experiment: Experiment, panels: list[Subplot], words: str, folder: Path
) -> Picture:
    """Write panels to files, and return them for a page."""
    svg, _ = write_panels(panels, folder)
    return Picture(
        svg.read_text(encoding="utf-8"),
        f"{experiment.title}. {words}",
        alt=f"{experiment.title}: {', '.join(panel.title for panel in panels)}.",
    )


def _series(panel: Panel, results: Results[ScoreRow]) -> dict[str, Points]:
    """Return the lines of a panel: a line for each name and, if there are several, model."""
    lines: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for row, by_model in results:
        for point in row.points:
            for model, records in by_model.items():
                found = _measured(records, panel.score)
                if point.panel == panel.title and found:
                    name = " ".join(filter(None, [point.line, model if row.models[1:] else ""]))
                    lines[name].append((point.x, found[0], found[1] or 0.0))
    return {name: sorted(points) for name, points in lines.items()}


def _scores_of(experiment: Experiment, results: Results[Any], models: set[str]) -> list[str]:
    """Return the scores that any of the models has in any row."""
    return [
        score
        for score in experiment.scores
        if any(
            record[score] is not None
            for _, by_model in results
            for model in models
            for record in by_model[model]
        )
    ]


def _heading(experiment: Experiment, models: set[str], score: str) -> str:
    published = any(row.published(model, score) for row in experiment.rows for model in models)
    return SCORES[score] + (" (paper)" if published else "")


def _mean(records: Records, key: str, digits: int) -> str:
    values = [record[key] for record in records if record[key] is not None]
    return f"{np.mean(values):.{digits}f}" if values else "–"


def _ours_and_paper(records: Records, row: Row, model: str, score: str) -> str:
    """Return our mean and, in brackets, the paper's."""
    ours, paper = _measured(records, score), row.published(model, score)
    digits = 3 if score in _PLAIN else 2
    if ours is None:
        return "–"
    text = _with_spread(*ours, digits)
    return text if paper is None else f"{text} ({_with_spread(*paper, digits)})"


def _measured(records: Records, score: str) -> Published | None:
    """Return mean and standard deviation over seeds, as the paper's; None if there is no value."""
    factor = 1 if score in _PLAIN else 100
    values = [factor * record[score] for record in records if record[score] is not None]
    if not values:
        return None
    return float(np.mean(values)), float(np.std(values, ddof=1)) if values[1:] else None


def _with_spread(mean: float, spread: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")
