"""Figures of latents alone, where no factors are known: every pair, and the course over time."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from demix.report.figures import MOST_POINTS, cloud, some_rows
from demix.report.records import correlation_of, thinned
from demix.report.style import axis, base_layout, colour, number, plain

# A 7th row of panels would make all of them too small to see anything in.
MOST_PAIRED = 6
MOST_COURSES = 12
_BINS = 30
_POINTS = 2000


def pair_plot(latents: ArrayLike, names: Sequence[str]) -> go.Figure:
    """Draw every pair of latents: points below the diagonal, correlations above, histograms on it.

    The first 6 columns of ``latents`` ``(N, n)`` are drawn, with at most 2000 points in a panel;
    correlations and histograms use all rows.
    """
    values = np.asarray(latents, dtype=float)[:, :MOST_PAIRED]
    labels, n = [_short(name) for name in names], values.shape[1]
    figure = make_subplots(
        rows=n,
        cols=n,
        specs=[[{} if j <= i else None for j in range(n)] for i in range(n)],
        horizontal_spacing=0.16 / (n + 1),
        vertical_spacing=0.16 / (n + 1),
    )
    shown = some_rows(len(values), min(_POINTS, MOST_POINTS // max(1, n * (n - 1) // 2)))
    # Bounds, not automatic ranges, so that a latent has one scale in all its panels.
    low, high = values.min(axis=0), values.max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    ranges = np.stack([low - margin, high + margin], axis=1).tolist()
    for i in range(n):
        for j in range(n):
            place = {"row": i + 1, "col": j + 1}
            if j > i:
                # The panels on the diagonal say where a column and a row of panels lie.
                across = figure.get_subplot(j + 1, j + 1).xaxis.domain
                up = figure.get_subplot(i + 1, i + 1).yaxis.domain
                figure.add_annotation(
                    text=f"r = {number(correlation_of(values[:, i], values[:, j]))}",
                    x=sum(across) / 2,
                    y=sum(up) / 2,
                    xref="paper",
                    yref="paper",
                    showarrow=False,
                    font={"size": 13, "color": colour("soft")},
                )
                continue
            if i == j:
                heights, edges = np.histogram(values[:, i], bins=_BINS)
                figure.add_bar(
                    x=(edges[:-1] + edges[1:]) / 2,
                    y=heights,
                    width=np.diff(edges),
                    marker={"color": colour("accent"), "opacity": 0.55, "line": {"width": 0}},
                    hovertemplate="about %{x:.3f}<br>%{y:,} rows<extra></extra>",
                    **place,
                )
            else:
                points = values[shown][:, [j, i]]
                figure.add_trace(cloud(points, labels[j], labels[i], size=3), **place)
            bottom, left, off = i == n - 1, j == 0, i != j
            figure.update_xaxes(
                axis(
                    labels[j] if bottom else None,
                    nticks=4,
                    showticklabels=bottom,
                    showgrid=off,
                    range=ranges[j],
                ),
                **place,
            )
            # The height of a histogram is a count, shown on hovering.
            up = {"range": ranges[i]} if off else {}
            title = labels[i] if left else None
            figure.update_yaxes(
                axis(title, nticks=4, showticklabels=left and off, showgrid=off, **up), **place
            )
    height = 80 + n * (170 if n > 2 else 240)
    figure.update_layout(**base_layout(height, 120 * n, showlegend=False, bargap=0))
    return figure


def time_courses(latents: ArrayLike, rows: ArrayLike, names: Sequence[str]) -> go.Figure:
    """Draw each latent over the numbers of its ``rows`` ``(N,)``, one panel below the other.

    The first 12 columns of ``latents`` ``(N, n)`` are drawn: of at most 2000 points the smallest
    and the largest value of every stretch of rows.
    """
    values, when = np.asarray(latents, dtype=float)[:, :MOST_COURSES], np.asarray(rows)
    n = values.shape[1]
    figure = make_subplots(rows=n, cols=1, shared_xaxes=True, vertical_spacing=0.25 / (n + 5))
    for j in range(n):
        kept, label = thinned(values[:, j], min(_POINTS, MOST_POINTS // n)), _short(names[j])
        figure.add_scatter(
            x=when[kept],
            y=values[kept, j].astype(np.float32),
            mode="lines",
            line={"color": colour("accent"), "width": 1.2},
            hovertemplate=f"{label} %{{y:.3f}}<br>row %{{x:,}}<extra></extra>",
            row=j + 1,
            col=1,
        )
        figure.update_yaxes(axis(label, nticks=4), row=j + 1)
    figure.update_xaxes(axis(exponentformat="none", separatethousands=True))
    figure.update_xaxes(axis("row"), row=n)
    figure.update_layout(**base_layout(70 + n * (110 if n > 1 else 220), 420, showlegend=False))
    return figure


def _short(name: str, most: int = 16) -> str:
    # Axes have little room; the tables and the text show names in full.
    return plain(name if len(name) <= most else name[: most - 1] + "…")
