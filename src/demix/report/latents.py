"""Figures of latents alone, where no factors are known: every pair, and the course over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray
from plotly.subplots import make_subplots

from demix._support.errors import DemixError
from demix.report.figures import MOST_POINTS
from demix.report.records import correlation_of, matrix_of, names_of, numbers_of, thinned
from demix.report.style import axis, base_layout, colour, number, plain

# A 7th row of panels would make all of them too small to see anything in.
MOST_PAIRED = 6
MOST_COURSES = 12
_BINS = 30
# A pause this many times as long as the usual step is a gap, which no line may bridge.
_GAP = 10


def pair_plot(
    latents: ArrayLike, names: Sequence[str] | None = None, max_points: int = 2000
) -> go.Figure:
    """Draw every pair of latents: points below the diagonal, correlations above, histograms on it.

    The first 6 columns of ``latents`` ``(N, n)`` are drawn, with at most ``max_points`` points in a
    panel; correlations and histograms use all rows.
    """
    values = matrix_of(latents, "latents")
    labels = [_short(name) for name in names_of(names, values.shape[1], "latent")]
    values = values[:, :MOST_PAIRED]
    count, n = values.shape
    figure = make_subplots(
        rows=n,
        cols=n,
        specs=[[{} if j <= i else None for j in range(n)] for i in range(n)],
        horizontal_spacing=0.16 / (n + 1),
        vertical_spacing=0.16 / (n + 1),
    )
    panels = max(1, n * (n - 1) // 2)
    points = max(1, min(count, max_points, MOST_POINTS // panels))
    shown = np.sort(np.random.default_rng(0).choice(count, points, replace=False))
    look = {"size": 3, "color": colour("accent"), "opacity": 0.3 if points > 300 else 0.6}
    # Bounds, not automatic ranges, so that a latent has one scale in all its panels.
    low, high = values.min(axis=0), values.max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    for i in range(n):
        for j in range(i + 1):
            place = {"row": i + 1, "col": j + 1}
            if i == j:
                _histogram(figure, values[:, i], place)
            else:
                figure.add_scatter(
                    x=values[shown, j].astype(np.float32),
                    y=values[shown, i].astype(np.float32),
                    mode="markers",
                    marker=look,
                    hovertemplate=f"{labels[j]} %{{x:.3f}}<br>{labels[i]} %{{y:.3f}}"
                    "<extra></extra>",
                    **place,
                )
            bottom, left, off = i == n - 1, j == 0, i != j
            figure.update_xaxes(
                axis(
                    labels[j] if bottom else None,
                    nticks=4,
                    showticklabels=bottom,
                    showgrid=off,
                    range=[low[j] - margin[j], high[j] + margin[j]],
                ),
                **place,
            )
            # The height of a histogram is a count, shown on hovering.
            up = {"range": [low[i] - margin[i], high[i] + margin[i]]} if off else {}
            title = labels[i] if left else None
            figure.update_yaxes(
                axis(title, nticks=4, showticklabels=left and off, showgrid=off, **up), **place
            )
    _write_correlations(figure, values)
    height = 80 + n * (170 if n > 2 else 240)
    figure.update_layout(**base_layout(height, 120 * n, showlegend=False, bargap=0))
    return figure


def time_courses(
    latents: ArrayLike,
    time: ArrayLike,
    names: Sequence[str] | None = None,
    time_label: str = "row",
    max_points: int = 2000,
) -> go.Figure:
    """Draw each latent over time, one panel below the other.

    The first 12 columns of ``latents`` ``(N, n)`` are drawn: of at most ``max_points`` points the
    smallest and the largest value of every stretch of rows. ``time`` ``(N,)`` may not run back; a
    line stops at a gap.
    """
    values = matrix_of(latents, "latents")
    labels = [_short(name) for name in names_of(names, values.shape[1], "latent")]
    when: NDArray[np.floating[Any]] = numbers_of(time, "time")
    if when.shape != values.shape[:1] or not np.isfinite(when).all():
        raise DemixError(
            f"time must hold one finite number per row of the latents, {len(values)} in all, but "
            f"has shape {when.shape}; pass the row numbers if no times are known"
        )
    steps = np.diff(when)
    if np.any(steps < 0):
        raise DemixError(
            f"time may not run back, but does after row {int(np.argmax(steps < 0))}; sort the rows "
            "by time, or leave time out if their order means nothing"
        )
    # How many gaps lie before each row: two neighbours on a line must have the same number.
    usual = float(np.median(steps)) if steps.size else 0.0
    stretch = np.concatenate([[0], np.cumsum(steps > _GAP * usual)]) if usual > 0 else 0 * when
    halved = when.astype(np.float32)
    if np.array_equal(halved, when):
        when = halved  # in half the bytes; row numbers above 16 million would not be whole
    n = min(values.shape[1], MOST_COURSES)
    figure = make_subplots(rows=n, cols=1, shared_xaxes=True, vertical_spacing=0.25 / (n + 5))
    for j in range(n):
        kept = thinned(values[:, j], min(max_points, MOST_POINTS // n))
        breaks = np.flatnonzero(np.diff(stretch[kept])) + 1
        figure.add_scatter(
            x=np.insert(when[kept], breaks, np.nan),
            y=np.insert(values[kept, j].astype(np.float32), breaks, np.nan),
            mode="lines",
            line={"color": colour("accent"), "width": 1.2},
            hovertemplate=f"{labels[j]} %{{y:.3f}}<br>{plain(time_label)} %{{x:,}}<extra></extra>",
            row=j + 1,
            col=1,
        )
        figure.update_yaxes(axis(labels[j], nticks=4), row=j + 1)
    figure.update_xaxes(axis(exponentformat="none", separatethousands=True))
    figure.update_xaxes(axis(plain(time_label)), row=n)
    figure.update_layout(**base_layout(70 + n * (110 if n > 1 else 220), 420, showlegend=False))
    return figure


def _histogram(figure: go.Figure, values: NDArray[np.float64], place: dict[str, int]) -> None:
    heights, edges = np.histogram(values, bins=_BINS)
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=heights,
        width=np.diff(edges),
        marker={"color": colour("accent"), "opacity": 0.55, "line": {"width": 0}},
        hovertemplate="about %{x:.3f}<br>%{y:,} rows<extra></extra>",
        **place,
    )


def _write_correlations(figure: go.Figure, values: NDArray[np.float64]) -> None:
    n = values.shape[1]
    for i in range(n):
        for j in range(i + 1, n):
            # The panels on the diagonal say where a column and a row of panels lie.
            across = next(figure.select_xaxes(row=j + 1, col=j + 1)).domain
            up = next(figure.select_yaxes(row=i + 1, col=i + 1)).domain
            figure.add_annotation(
                text=f"r = {number(correlation_of(values[:, i], values[:, j]))}",
                x=sum(across) / 2,
                y=sum(up) / 2,
                xref="paper",
                yref="paper",
                showarrow=False,
                font={"size": 13, "color": colour("soft")},
            )


def _short(name: str, most: int = 16) -> str:
    # Axes have little room; the tables and the text show names in full.
    return plain(name if len(name) <= most else name[: most - 1] + "…")
