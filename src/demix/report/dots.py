"""Numbers with intervals, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from demix.report.style import axis, axis_title, base_layout, colour, number, plain


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
    """A dot with an interval for each name, the first on top.

    Parameters
    ----------
    names : sequence of str, length n
        What each number is of.
    values, low, high : array_like, shape (n,)
        Numbers and ends of their intervals, which may be infinite.
    title : str
        What the axis shows.
    unit : str
        Written behind a number when it is pointed at.
    legend : str, optional
        What the dots are called beside other marks.

    Examples
    --------
    >>> interval_dots(["box"], [1.5], [1.2], [1.7], title="gain").data[0].x.tolist()
    [1.5]
    """
    dots, lower, upper = (np.asarray(x, dtype=float) for x in (values, low, high))
    labels = [plain(name) for name in names]
    hints = [
        [label, f"{number(a, 3)} to {number(b, 3)}"]
        for label, a, b in zip(labels, lower, upper, strict=True)
    ]
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
    figure.update_xaxes(axis(title=axis_title(title)))
    figure.update_yaxes(
        axis(
            tickvals=list(range(len(dots))),
            ticktext=labels,
            tickfont={"size": 12, "color": colour("ink")},
            range=[len(dots) - 0.5, -0.5],
            automargin=True,
            showline=False,
            ticks="outside",
            ticklen=6,
            tickcolor="rgba(0,0,0,0)",
        )
    )
    figure.update_layout(**base_layout(height=100 + 42 * len(dots), min_width=480))
    return figure
