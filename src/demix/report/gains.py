"""What a fit gained over the null: as checked numbers, as words, and as figures of several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from demix._support.errors import DemixError
from demix.report.dots import interval_dots
from demix.report.records import column, thinned, value_of
from demix.report.style import axis, axis_title, base_layout, colour, number, plain
from demix.report.training import MOST_STEPS

_COLOURS = ("accent", "second", "third", "fourth", "fifth", "sixth")
_DASHES = ("solid", "dash", "dot", "dashdot")
_NEEDED = ("bits", "low", "high", "loss", "null")


@dataclass(frozen=True)
class Gain:
    """How far the held-out loss lies below that of positives or labels exchanged at random.

    Attributes
    ----------
    bits, low, high : float
        The gain in bits per sample, and the ends of its interval, which may be infinite.
    loss, null : float
        Held-out loss of the fit and of the null, in nats.
    level : float or None
        Coverage of the interval, such as 0.95.
    """

    bits: float
    low: float
    high: float
    loss: float
    null: float
    level: float | None = None

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{number(self.low, 3)} to {number(self.high, 3)}"

    @property
    def interval_name(self) -> str:
        """What the interval is called."""
        return "interval" if self.level is None else f"{100 * self.level:g} % interval"


def gain_of(gain: Mapping[str, float]) -> Gain:
    """Gain out of a record, refused where a number is missing or not finite.

    Examples
    --------
    >>> gain_of({"bits": 1.5, "low": 1.2, "high": 1.7, "loss": 5.2, "null": 6.24}).interval
    '1.200 to 1.700'
    """
    values = {key: value_of(gain, key) for key in _NEEDED}
    ends = ("low", "high")
    missing = [k for k, v in values.items() if math.isnan(v) or (math.isinf(v) and k not in ends)]
    if missing:
        raise DemixError(
            f"a gain needs finite numbers {', '.join(_NEEDED)}, but has none for "
            f"{', '.join(missing)}; score the fit on held-out rows first"
        )
    if values["low"] > values["high"]:
        raise DemixError(
            f"the interval of a gain must reach from low to high, but {values['low']:.4g} lies "
            f"above {values['high']:.4g}; exchange the two"
        )
    level = value_of(gain, "level")
    if not math.isnan(level) and not 0 < level < 1:
        raise DemixError(
            f"the level of an interval must lie between 0 and 1, but is {level:.4g}; write 95 "
            "percent as 0.95"
        )
    return Gain(**values, level=None if math.isnan(level) else level)


def gain_dots(names: Sequence[str], gains: Sequence[Gain]) -> go.Figure:
    """Gain of each run as a dot with its interval, and the null as a line at zero.

    Examples
    --------
    >>> gain = Gain(1.5, 1.2, 1.7, 5.2, 6.24)
    >>> gain_dots(["box"], [gain]).data[0].x.tolist()
    [1.5]
    """
    figure = interval_dots(
        names,
        [gain.bits for gain in gains],
        [gain.low for gain in gains],
        [gain.high for gain in gains],
        title="gain over the null (bits per sample)",
        unit=" bits",
    )
    figure.add_vline(x=0, line={"color": colour("ink"), "width": 1.3, "dash": "dash"})
    figure.update_layout(showlegend=False)
    return figure


def gain_curves(
    names: Sequence[str], histories: Sequence[Sequence[Mapping[str, Any]]]
) -> go.Figure | None:
    """Held-out gain of each run over its steps; None where no history holds a held-out loss.

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
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
    )
    return figure
