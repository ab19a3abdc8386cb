"""Plotly figures of pages, and arrays and records as they need them: named, few enough to draw."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray
from plotly.subplots import make_subplots

from demix._support.errors import DemixError
from demix.report.style import axis, base_layout, colour, interval, lay_out, number, plain, styled

# Browsers draw each point as one SVG element; beyond this many in one figure scrolling stutters.
_MOST_POINTS = 9_000
_POINTS = 2000
# Heat maps up to this many rows and columns have room for a number in every cell.
MOST_LABELLED = 12
# From -1 (orange) through 0 (the page) to +1 (blue).
_DIVERGING = ("minus2", "minus1", "zero", "plus1", "plus2")
# A 7th row of panels would make all of them too small to see anything in.
MOST_PAIRED = 6
MOST_COURSES = 12
_BINS = 30
_ENDS = {"low": -math.inf, "high": math.inf, "linear": math.nan}


def recovered_scatter(
    factors: ArrayLike,
    latents: ArrayLike,
    names: Sequence[str],
    *,
    across: str = "true",
    up: str = "recovered",
) -> go.Figure:
    """Draw every true factor ``(N, n)`` against the latent matched to it, a panel each.

    At most 2000 points are drawn in a panel; the correlation in its title uses all. ``across`` and
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
    shown, x, y = _some_rows(count, n), [], []
    for j in range(n):
        points = np.stack([true[shown, j], found[shown, j]], axis=1)
        cloud = _cloud(points, plain(across), plain(up), size=3.5)
        figure.add_trace(cloud, row=j // columns + 1, col=j % columns + 1)
        # The last panel of a column carries the axis title, also where the last row is not full.
        bottom, left = j + columns >= n, j % columns == 0
        x.append(axis(plain(across) if bottom else None, nticks=4))
        y.append(axis(plain(up) if left else None, nticks=4))
    figure.update_annotations(font={"size": 12, "color": colour("ink")})
    height, margin = 80 + rows * (300 if columns < 4 else 250), {"l": 52, "r": 8, "t": 62, "b": 48}
    lay_out(figure, base_layout(height, 150 * columns, margin=margin, showlegend=False), x, y)
    return figure


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
            colorscale=[[place / 4, colour(name)] for place, name in enumerate(_DIVERGING)],
            text=labels,
            texttemplate="%{text}" if max(n, m) <= MOST_LABELLED else None,
            customdata=where,
            **styled("heatmap"),
        )
    )
    axes = []
    for names, order in ((columns, None), (rows, "reversed")):
        # Names of neighbouring cells would overlap in a large heat map, so every k-th is written.
        ticks = range(0, len(names), math.ceil(len(names) / 24))
        bare = axis(showgrid=False, showline=False, ticks="outside", ticklen=4, automargin=True)
        bare |= {"tickcolor": "rgba(0,0,0,0)", "tickvals": list(ticks), "autorange": order}
        axes.append(bare | {"ticktext": [names[place] for place in ticks]})
    # Numbers in the cells need 33 pixels each; without them a heat map may shrink further.
    min_width = 120 + 33 * m if max(n, m) <= MOST_LABELLED else 300
    heading = {"text": plain(title), "font": {"size": 14, "color": colour("ink")}, "x": 0}
    layout = base_layout(
        height=int(np.clip(120 + 36 * n, 260, 560)),
        min_width=min_width,
        margin={"l": 30, "r": 8, "t": 40, "b": 30},
        title={**heading, "xref": "container", "y": 0.985, "yanchor": "top"},
    )
    lay_out(figure, layout, axes[:1], axes[1:])
    return figure


def interval_dots(
    names: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    title: str,
    line: float,
    unit: str = "",
    null: ArrayLike | None = None,
) -> go.Figure:
    """Draw a dot with an interval for each name, the first on top, and a dashed line.

    ``title`` names the axis, ``unit`` follows a number on hovering. Ends may be infinite. Scores of
    shuffled rows, ``null``, are crosses.
    """
    dots, lower, upper = (np.asarray(x, dtype=float) for x in (values, low, high))
    labels = [plain(name) for name in names]
    hints = [[label, interval(a, b)] for label, a, b in zip(labels, lower, upper, strict=True)]
    look, rows = styled("dots"), np.arange(len(dots))
    look["error_x"] |= {"array": np.maximum(0, upper - dots)}
    look["error_x"] |= {"arrayminus": np.maximum(0, dots - lower)}
    hint = f"%{{customdata[0]}}<br>%{{x:.3f}}{plain(unit)} (%{{customdata[1]}})<extra></extra>"
    runs = go.Scatter(x=dots, y=rows, name="runs", customdata=hints, hovertemplate=hint, **look)
    figure = go.Figure(runs)
    height, named = 100 + 42 * len(dots), null is not None
    layout = base_layout(height, 480, showlegend=named, legend=styled("legend"))
    lay_out(figure, layout, [axis(title)], [names_axis(labels)])
    if null is not None:
        figure.add_scatter(x=np.asarray(null), y=rows, customdata=labels, **styled("shuffled"))
        # An R² has no lower end; values far below zero would squeeze everything else.
        least = float(np.min([0.0, *lower, *np.ravel(null)]))
        figure.update_xaxes(range=[max(least, -1.0) - 0.04, 1.04])
    figure.add_vline(x=line, line=styled("guess"))
    return figure


def names_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis of names, the first on top."""
    return axis(
        tickvals=list(range(len(labels))),
        ticktext=labels,
        range=[len(labels) - 0.5, -0.5],
        **styled("names_axis"),
    )


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
    shown, x, y = _some_rows(len(values), n * (n - 1) // 2), [], []
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
                    **styled("correlation"),
                )
                continue
            if i == j:
                heights, edges = np.histogram(values[:, i], bins=_BINS)
                figure.add_bar(
                    x=(edges[:-1] + edges[1:]) / 2,
                    y=heights,
                    width=np.diff(edges),
                    **styled("histogram"),
                    **place,
                )
            else:
                points = values[shown][:, [j, i]]
                figure.add_trace(_cloud(points, labels[j], labels[i], size=3), **place)
            bottom, left, off = i == n - 1, j == 0, i != j
            title, more = labels[j] if bottom else None, {"showgrid": off, "range": ranges[j]}
            x.append(axis(title, nticks=4, showticklabels=bottom, **more))
            # The height of a histogram is a count, shown on hovering.
            up = {"range": ranges[i]} if off else {}
            title = labels[i] if left else None
            y.append(axis(title, nticks=4, showticklabels=left and off, showgrid=off, **up))
    height = 80 + n * (170 if n > 2 else 240)
    lay_out(figure, base_layout(height, 120 * n, showlegend=False, bargap=0), x, y)
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
        kept, label = thinned(values[:, j], min(_POINTS, _MOST_POINTS // n)), _short(names[j])
        figure.add_scatter(
            x=when[kept],
            y=values[kept, j].astype(np.float32),
            mode="lines",
            line={"color": colour("accent"), "width": 1.2},
            hovertemplate=f"{label} %{{y:.3f}}<br>row %{{x:,}}<extra></extra>",
            row=j + 1,
            col=1,
        )
    plain_numbers = {"exponentformat": "none", "separatethousands": True}
    x = [axis("row" if j == n - 1 else None, **plain_numbers) for j in range(n)]
    layout = base_layout(70 + n * (110 if n > 1 else 220), 420, showlegend=False)
    lay_out(figure, layout, x, [axis(_short(name), nticks=4) for name in names[:n]])
    return figure


def _short(name: str, most: int = 16) -> str:
    # Axes have little room; the tables and the text show names in full.
    return plain(name if len(name) <= most else name[: most - 1] + "…")


def _some_rows(count: int, panels: int) -> NDArray[np.intp]:
    """Return the numbers of rows to draw in each panel, at random and always the same."""
    most = min(count, _POINTS, max(1, _MOST_POINTS // max(1, panels)))
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def _cloud(points: NDArray[np.float64], across: str, up: str, *, size: float) -> go.Scatter:
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


def value_of(entry: Mapping[str, Any], key: str) -> float:
    """Return an entry of a record as a number, NaN if it is missing or None."""
    value = entry.get(key)
    return math.nan if value is None else float(value)


def column(history: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """Return one entry of each record as an array, NaN where it is missing or None."""
    return np.array([value_of(entry, key) for entry in history], dtype=float)


def gain_of(record: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers of a :class:`demix.Gain`; an end that is None is infinite."""
    return {key: _ENDS[key] if value is None else value for key, value in record.items()}


def thinned(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of at most ``most`` values whose line looks like that of all of them."""
    # The smallest and the largest value of every stretch are kept: every k-th value would lose
    # peaks.
    if len(values) <= most:
        return np.arange(len(values))
    kept = {0, len(values) - 1}
    for stretch in np.array_split(np.arange(len(values)), max(1, most // 2 - 1)):
        kept |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    return np.array(sorted(kept), dtype=np.intp)


def names_of(names: Sequence[str] | None, n: int, kind: str) -> list[str]:
    """Return the names of ``n`` columns, numbered if none are given."""
    if names is None:
        return [f"{kind} {j + 1}" for j in range(n)]
    if len(names) != n:
        raise DemixError(
            f"there must be one name per {kind}, {n} in all, not {len(names)}; add or drop names"
        )
    return [str(name) for name in names]


def left_out(most: int, count: int, what: str) -> str:
    """Say in a caption that not all are shown."""
    return f" Shown are the first {most} of {count} {what}." if count > most else ""


def correlation_of(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return Pearson's correlation, NaN if a column is constant."""
    spread = float(x.std() * y.std())
    return float(np.mean((x - x.mean()) * (y - y.mean())) / spread) if spread else math.nan
