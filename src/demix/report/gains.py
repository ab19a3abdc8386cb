"""The gain of fits over the null: checked numbers, and figures of several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from demix._support.errors import DemixError
from demix.report.figures import interval_dots
from demix.report.records import column, thinned, value_of
from demix.report.style import LEGEND_ABOVE, axis, axis_title, base_layout, colour, plain
from demix.report.training import MOST_STEPS

_COLOURS = ("accent", "second", "third", "fourth", "fifth", "sixth")
_DASHES = ("solid", "dash", "dot", "dashdot")
_NEEDED = ("bits", "low", "high", "loss", "null")
_ENDS = {"low": -math.inf, "high": math.inf}


def gain_of(record: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers of a gain: bits with the ends of their interval, loss and null in nats.

    An end that is None is infinite. Raise DemixError if a number is missing or not finite.

    Examples
    --------
    >>> gain_of({"bits": 1.5, "low": 1.2, "high": None, "loss": 5.2, "null": 6.24})["high"]
    inf
    """
    gain = {key: value_of(record, key) for key in _NEEDED}
    gain |= {key: end for key, end in _ENDS.items() if key in record and record[key] is None}
    missing = [k for k, v in gain.items() if math.isnan(v) or (math.isinf(v) and k not in _ENDS)]
    if missing:
        raise DemixError(
            f"a gain needs finite numbers {', '.join(_NEEDED)}, but has none for "
            f"{', '.join(missing)}; score the fit on held-out rows first"
        )
    if gain["low"] > gain["high"]:
        raise DemixError(
            f"the interval of a gain must reach from low to high, but {gain['low']:.4g} lies "
            f"above {gain['high']:.4g}; exchange the two"
        )
    return gain


def gain_dots(names: Sequence[str], gains: Sequence[Mapping[str, float]]) -> go.Figure:
    """Draw the gain of each run as a dot with its interval, and the null as a line at zero."""
    figure = interval_dots(
        names,
        *([gain[key] for gain in gains] for key in ("bits", "low", "high")),
        title="gain over the null (bits per sample)",
        unit=" bits",
    )
    figure.add_vline(x=0, line={"color": colour("ink"), "width": 1.3, "dash": "dash"})
    figure.update_layout(showlegend=False)
    return figure


def gain_curves(
    names: Sequence[str], histories: Sequence[Sequence[Mapping[str, Any]]]
) -> go.Figure | None:
    """Draw the held-out gain of each run over its steps; None if no history has a held-out loss.

    Examples
    --------
    >>> figure = gain_curves(["box"], [[{"step": 0, "validation": 6, "null": 6}]])
    >>> figure.data[0].y.tolist()
    [0.0]
    >>> gain_curves(["box"], [[]]) is None
    True
    """
    figure = go.Figure()
    for index, (name, history) in enumerate(zip(names, histories, strict=True)):
        steps, held_out = column(history, "step"), column(history, "validation")
        null = column(history, "null")
        known = np.flatnonzero(np.isfinite(steps) & np.isfinite(held_out) & np.isfinite(null))
        if known.size == 0:
            continue
        known = known[thinned(held_out[known], MOST_STEPS)]
        dash = _DASHES[index // len(_COLOURS) % len(_DASHES)]
        shade = colour(_COLOURS[index % len(_COLOURS)])
        figure.add_scatter(
            x=steps[known],
            y=(null - held_out)[known] / math.log(2),
            name=plain(name),
            mode="lines" if known.size > 1 else "markers",
            line={"color": shade, "width": 1.8, "dash": dash},
            hovertemplate=f"{plain(name)}<br>%{{y:.3f}} bits, step %{{x:,}}<extra></extra>",
        )
    if not figure.data:
        return None
    figure.add_hline(y=0, line={"color": colour("ink"), "width": 1.3, "dash": "dash"})
    step = axis_title("step")
    figure.update_xaxes(axis(exponentformat="none", separatethousands=True, title=step))
    figure.update_yaxes(axis(title=axis_title("held-out gain (bits per sample)"), nticks=6))
    figure.update_layout(**base_layout(height=400, min_width=420))
    figure.update_layout(showlegend=True, legend=LEGEND_ABOVE)
    return figure
