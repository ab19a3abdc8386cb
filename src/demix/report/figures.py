"""Plotly figures that several pages share: scatter plots, heat maps, dots with intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray
from plotly.subplots import make_subplots

from demix.report.records import correlation_of
from demix.report.style import axis, base_layout, colour, interval, number, plain

# Browsers draw each point as one SVG element; beyond this many in one figure scrolling stutters.
MOST_POINTS = 9_000
_POINTS = 1500
# Heat maps up to this many rows and columns have room for a number in every cell.
MOST_LABELLED = 12
# From -1 (orange) through 0 (the page) to +1 (blue).
_DIVERGING = ("minus2", "minus1", "zero", "plus1", "plus2")


def recovered_scatter(
    factors: ArrayLike,
    latents: ArrayLike,
    names: Sequence[str],
    *,
    across: str = "true",
    up: str = "recovered",
) -> go.Figure:
    """Draw every true factor ``(N, n)`` against the latent matched to it, a panel each.

    At most 1500 points are drawn in a panel; the correlation in its title uses all. ``across`` and
    ``up`` name the axes.
    """
    true, found = np.asarray(factors, dtype=float), np.asarray(latents, dtype=float)
    count, n = true.shape
    columns = n if n <= 4 else 5
    rows = math.ceil(n / columns)
    titles = [
        f"{plain(name)}<br>r = {number(correlation_of(true[:, j], found[:, j]), 3)}"
        for j, name in enumerate(names)
    ]
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=titles,
        horizontal_spacing=0.2 / columns,
        vertical_spacing=0.34 / rows,
    )
    shown = some_rows(count, min(_POINTS, MOST_POINTS // n))
    for j in range(n):
        place = {"row": j // columns + 1, "col": j % columns + 1}
        points = np.stack([true[shown, j], found[shown, j]], axis=1)
        figure.add_trace(cloud(points, plain(across), plain(up), size=3.5), **place)
        # The last panel of a column carries the axis title, also where the last row is not full.
        bottom, left = j + columns >= n, j % columns == 0
        figure.update_xaxes(axis(plain(across) if bottom else None, nticks=4), **place)
        figure.update_yaxes(axis(plain(up) if left else None, nticks=4), **place)
    figure.update_annotations(font={"size": 12, "color": colour("ink")})
    height, margin = 80 + rows * (300 if columns < 4 else 250), {"l": 52, "r": 8, "t": 62, "b": 48}
    figure.update_layout(**base_layout(height, 150 * columns, margin=margin, showlegend=False))
    return figure


def some_rows(count: int, most: int) -> NDArray[np.intp]:
    """Return the numbers of at most ``most`` rows, drawn at random and always the same."""
    return np.sort(np.random.default_rng(0).choice(count, max(1, min(count, most)), replace=False))


def cloud(points: NDArray[np.float64], across: str, up: str, *, size: float) -> go.Scatter:
    """Return points ``(K, 2)`` of a panel, whose axes have these names."""
    return go.Scatter(
        x=points[:, 0].astype(np.float32),
        y=points[:, 1].astype(np.float32),
        mode="markers",
        marker={
            "size": size,
            "color": colour("accent"),
            "opacity": 0.3 if len(points) > 300 else 0.6,
        },
        hovertemplate=f"{across} %{{x:.3f}}<br>{up} %{{y:.3f}}<extra></extra>",
    )


def correlation_heatmap(
    corr: ArrayLike, row_names: Sequence[str], col_names: Sequence[str], title: str
) -> go.Figure:
    """Draw correlations ``(n, m)`` as colours from -1 to 1, with numbers if there is room.

    A cell that is NaN (a constant column has no correlation) stays empty.
    """
    table = np.asarray(corr, dtype=float)
    n, m = table.shape
    rows, columns = [plain(name) for name in row_names], [plain(name) for name in col_names]
    labels = np.array([[number(value) for value in line] for line in table], dtype=object)
    where = [[f"{row}, {column}" for column in columns] for row in rows]
    figure = go.Figure(
        go.Heatmap(
            # Positions, not names, so that two columns of one name stay two columns.
            x=list(range(m)),
            y=list(range(n)),
            z=table,
            zmin=-1,
            zmax=1,
            colorscale=[[place / 4, colour(name)] for place, name in enumerate(_DIVERGING)],
            xgap=1,
            ygap=1,
            text=labels,
            texttemplate="%{text}" if max(n, m) <= MOST_LABELLED else None,
            textfont={"size": 10},
            customdata=where,
            hovertemplate="%{customdata}<br>r = %{text}<extra></extra>",
            hoverongaps=False,
            colorbar={
                "thickness": 9,
                "outlinewidth": 0,
                "tickvals": [-1, -0.5, 0, 0.5, 1],
                "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
                "tickfont": {"size": 11, "color": colour("soft")},
            },
        )
    )
    for axes, names in ((figure.layout.xaxis, columns), (figure.layout.yaxis, rows)):
        # Names of neighbouring cells would overlap in a large heat map, so every k-th is written.
        ticks = range(0, len(names), math.ceil(len(names) / 24))
        bare = axis(showgrid=False, showline=False, ticks="outside", ticklen=4, automargin=True)
        axes.update(bare, tickcolor="rgba(0,0,0,0)", tickvals=list(ticks))
        axes.update(ticktext=[names[place] for place in ticks])
    figure.update_yaxes(autorange="reversed")
    # Numbers in the cells need 33 pixels each; without them a heat map may shrink further.
    min_width = 120 + 33 * m if max(n, m) <= MOST_LABELLED else 300
    heading = {"text": plain(title), "font": {"size": 14, "color": colour("ink")}, "x": 0}
    figure.update_layout(
        **base_layout(
            height=int(np.clip(120 + 36 * n, 260, 560)),
            min_width=min_width,
            margin={"l": 30, "r": 8, "t": 40, "b": 30},
            title={**heading, "xref": "container", "y": 0.985, "yanchor": "top"},
        )
    )
    return figure


def interval_dots(
    names: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    title: str,
    unit: str = "",
    legend: str | None = None,
) -> go.Figure:
    """Draw a dot with an interval for each name, the first on top; ends may be infinite.

    ``title`` names the axis, ``unit`` follows a number on hovering, ``legend`` names the dots.
    """
    dots, lower, upper = (np.asarray(x, dtype=float) for x in (values, low, high))
    labels = [plain(name) for name in names]
    hints = [[label, interval(a, b)] for label, a, b in zip(labels, lower, upper, strict=True)]
    figure = go.Figure(
        go.Scatter(
            x=dots,
            y=np.arange(len(dots)),
            name=legend,
            mode="markers",
            marker={"color": colour("accent"), "size": 10},
            error_x={
                "array": np.maximum(0, upper - dots),
                "arrayminus": np.maximum(0, dots - lower),
                "symmetric": False,
                "color": colour("accent"),
                "thickness": 1.6,
                "width": 5,
            },
            customdata=hints,
            hovertemplate=f"%{{customdata[0]}}<br>%{{x:.3f}}{plain(unit)} (%{{customdata[1]}})"
            "<extra></extra>",
        )
    )
    figure.update_xaxes(axis(title))
    figure.update_yaxes(names_axis(labels))
    figure.update_layout(**base_layout(height=100 + 42 * len(dots), min_width=480))
    return figure


def names_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis of names, the first on top."""
    return axis(
        tickvals=list(range(len(labels))),
        ticktext=labels,
        tickfont={"size": 12, "color": colour("ink")},
        range=[len(labels) - 0.5, -0.5],
        automargin=True,
        showline=False,
        ticks="outside",
        ticklen=6,
        tickcolor="rgba(0,0,0,0)",
    )
