"""The picture that goes with a table."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.papers.pages.curves import concentration_curve
from demix.papers.pages.panels import write_panels
from demix.papers.pages.series import Series, Subplot
from demix.papers.pages.table import comparison_figure
from demix.papers.reizinger2024.factor_table import draw_factors
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.reizinger2024.readout_table import readout_panels
from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Experiment, Panel, Row
from demix.papers.runner.scales import scale_named
from demix.papers.zimmermann2021.pairs import PairRow
from demix.report.blocks import Figure, Picture
from demix.spaces.sphere import Sphere

Rows = list[tuple[Row, dict[str, list[dict[str, Any]]]]]


def draw(experiment: Experiment[Row], rows: Rows, folder: Path) -> Figure | Picture | None:
    """Return a figure's panels, also written to files, or ours beside the paper's."""
    if isinstance(experiment.rows[0], FactorRow):
        return draw_factors(experiment, rows, folder)
    if experiment.panels:
        return _panels(experiment, rows, folder)
    factors = [(row, cells) for row, cells in rows if isinstance(row, ReadOutRow)]
    if factors:
        return _picture(
            experiment,
            readout_panels(factors),
            "Pearson's r of linear read-outs, with 95 % intervals over the images that are scored.",
            folder,
        )
    if experiment.name == "clica-marginal":
        return _concentration(rows)
    bars = []
    for row, cells in rows:
        for model in row.main:
            values = [100 * record[experiment.score] for record in cells[model]]
            figure = row.published(model, experiment.score)
            if values and figure:
                bars.append(
                    {
                        "label": f"{row.number}. {row.label(model)}",
                        "ours": np.mean(values),
                        "ours_std": np.std(values, ddof=1) if len(values) > 1 else None,
                        "paper": figure[0],
                        "paper_std": figure[1],
                    }
                )
    return comparison_figure(bars) if bars else None


def _panels(experiment: Experiment[Row], rows: Rows, folder: Path) -> Picture | None:
    drawn = [
        Subplot(panel.title, panel.x_label, panel.y_label, series, log_x=panel.log_x)
        for panel in experiment.panels
        if (series := _series(panel, rows))
    ]
    words = "Mean over seeds; bands reach one standard deviation to either side."
    return _picture(experiment, drawn, words, folder) if drawn else None


def _picture(
    experiment: Experiment[Row], drawn: list[Subplot], words: str, folder: Path
) -> Picture:
    """Write panels to files, and return them for a page."""
    svg, _ = write_panels(drawn, folder)
    return Picture(
        svg.read_text(encoding="utf-8"),
        f"{experiment.title}. {words}",
        alt=f"{experiment.title}: {', '.join(panel.title for panel in drawn)}.",
    )


def _series(panel: Panel, rows: Rows) -> list[Series]:
    """Return the lines of a panel: a line for each name and, if there are several, model."""
    lines: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    factor = 100 if panel.percent else 1
    for row, cells in rows:
        assert isinstance(row, LabelRow)
        for point in row.points:
            for model, records in cells.items():
                values = [factor * r[panel.score] for r in records if r[panel.score] is not None]
                if point.panel == panel.title and values:
                    name = " ".join(filter(None, [point.line, model if row.models[1:] else ""]))
                    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                    lines[name].append((point.x, float(np.mean(values)), spread))
    return [
        Series(name, [x for x, _, _ in line], [y for _, y, _ in line], [s for _, _, s in line])
        for name, line in ((name, sorted(points)) for name, points in lines.items())
    ]


def _concentration(rows: Rows) -> Figure:
    """Draw the marginal figure of the first paper."""
    points = []
    for row, cells in rows:
        assert isinstance(row, PairRow)
        records, kappa = cells["unsupervised"], row.marginal.width
        sphere = Sphere(scale_named(records[0]["scale"]).dim)
        points.append(
            {
                "kappa": kappa,
                "score": 100 * np.mean([record["r2"] for record in records]),
                "difference": VonMisesFisher(sphere, kappa).mass_difference() if kappa else 0.0,
            }
        )
        conditional = row.conditional.width
    return Figure(
        concentration_curve(points, conditional),
        "Score against the concentration of the marginal, and the probability mass by which "
        "the marginal differs from uniform. Dotted: the concentration of the conditional.",
        alt="Score and mass difference against the concentration of the marginal.",
    )
