"""Figures of scores: ours and the paper's, and along a line of settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from demix.report.figures import names_axis, value_of
from demix.report.style import axis, base_layout, colour, lay_out, plain

_LEGEND = {"orientation": "h", "x": 0, "y": 1.0, "xanchor": "left", "yanchor": "bottom"}


def comparison_bars(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Return a dot plot of our scores and the paper's, a line per setting, with error bars.

    Each row has ``label``, ``ours``, ``ours_std``, ``paper`` and ``paper_std``: scores and standard
    deviations in percent, None where there is none.
    """
    labels = [plain(row["label"]) for row in rows]
    figure = go.Figure()
    # name, outline, fill, symbol, and a shift off the row's line that keeps error bars apart
    for name, line, fill, symbol, shift in (
        ("paper", colour("second"), colour("paper"), "diamond", 0.14),
        ("ours", colour("accent"), colour("accent"), "circle", -0.14),
    ):
        spread = np.array([value_of(row, f"{name}_std") for row in rows])
        spreads = [f" ± {std:.2f}" if np.isfinite(std) else "" for std in spread]
        figure.add_scatter(
            x=np.array([value_of(row, name) for row in rows]),
            y=np.arange(len(rows)) + shift,
            name=name,
            mode="markers",
            marker=dict(color=fill, symbol=symbol, size=9, line={"width": 2, "color": line}),
            error_x={"array": spread, "color": line, "thickness": 1.5, "width": 4},
            customdata=list(zip(labels, spreads, strict=True)),
            hovertemplate=f"%{{customdata[0]}}<br>{name} %{{x:.2f}}%{{customdata[1]}}"
            "<extra></extra>",
        )
    layout = base_layout(110 + 46 * len(rows), 480, legend={**_LEGEND, "traceorder": "reversed"})
    lay_out(figure, layout, [axis(title="score (percent)")], [names_axis(labels)])
    return figure


def concentration_curve(points: Sequence[Mapping[str, Any]], conditional: float) -> go.Figure:
    """Draw score and distance from uniform against the concentration of the marginal.

    Points have ``kappa``, 0 for uniform, ``difference``, a share of mass, and in percent ``score``
    or ``any``, the score of a model that assumes nothing of the marginal, or both.
    """
    kappas = [float(point["kappa"]) for point in points]
    # A logarithmic axis has no zero: the uniform marginal stands one step left of the smallest.
    smallest = min((kappa for kappa in kappas if kappa > 0), default=1.0)
    places = [kappa if kappa > 0 else smallest / 3 for kappa in kappas]
    figure = go.Figure()
    for name, key, shade, factor, side in (
        ("score", "score", "ink", 1.0, "y"),
        ("score, any marginal", "any", "second", 1.0, "y"),
        ("mass difference", "difference", "accent", 100.0, "y2"),
    ):
        if not all(key in point for point in points):
            continue
        values = [factor * value_of(point, key) for point in points]
        figure.add_scatter(
            x=places,
            y=values,
            yaxis=side,
            name=name,
            mode="lines+markers",
            line={"color": colour(shade), "width": 2},
            customdata=kappas,
            hovertemplate=f"κ = %{{customdata:g}}<br>{name} %{{y:.2f}} %<extra></extra>",
        )
    figure.add_vline(x=conditional, line={"dash": "dot", "color": colour("ink"), "width": 1.5})
    figure.update_layout(**base_layout(height=420, min_width=480))
    ticks = {"tickvals": places, "ticktext": [f"{k:g}" if k else "uniform" for k in kappas]}
    figure.update_layout(
        xaxis=axis(type="log", title="concentration κ of the marginal", **ticks),
        yaxis=axis(title="R² (percent)", range=[0, 105]),
        yaxis2=axis(
            title="mass difference to uniform (percent)",
            overlaying="y",
            side="right",
            range=[0, 105],
            showgrid=False,
        ),
        legend=_LEGEND,
        margin={"r": 70},
    )
    return figure
