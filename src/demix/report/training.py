"""The section about training: losses and scores over its steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from demix._support.errors import DemixError
from demix.report.blocks import Figure, Section
from demix.report.records import column, thinned
from demix.report.style import LEGEND, axis, base_layout, colour

# Points of a line; more would not be seen and would only make the file larger.
MOST_STEPS = 1000


def training_curve(
    history: Sequence[Mapping[str, Any]],
    best_step: int | None = None,
    *,
    guess: float | None = None,
) -> go.Figure:
    """Draw loss, held-out loss and score over the steps of training, where they were measured.

    Entries of ``history`` have ``step``, ``seconds`` and ``loss``, and possibly ``validation`` (the
    held-out loss), ``score`` (R² in percent) and ``optimum`` (the lowest possible loss); a value
    that is missing, None or not finite is left out. A vertical line marks ``best_step``, whose
    encoder was kept, a horizontal one the loss of a ``guess``.
    """
    steps = column(history, "step")
    seconds = column(history, "seconds")
    loss, validation = column(history, "loss"), column(history, "validation")
    score, optimum = column(history, "score"), column(history, "optimum")
    guessed = np.full_like(loss, np.nan if guess is None else guess)
    drawn = np.isfinite(loss) | np.isfinite(validation)
    if not np.any(np.isfinite(steps) & drawn):
        raise DemixError(
            "the training history must hold at least one entry with a step and a finite loss, but "
            f"none of its {len(history)} entries does; leave the curve out for such a run"
        )
    held_out = bool(np.isfinite(validation).any())
    panels = 2 if np.isfinite(score).any() else 1
    figure = make_subplots(rows=panels, cols=1, shared_xaxes=True, vertical_spacing=0.09)

    def draw(name: str, values: NDArray[np.float64], row: int, look: dict[str, Any]) -> None:
        known = np.flatnonzero(np.isfinite(steps) & np.isfinite(values))
        known = known[thinned(values[known], MOST_STEPS)]
        time = [f"{t:.1f} s" if np.isfinite(t) else "time unknown" for t in seconds[known]]
        figure.add_scatter(
            x=steps[known],
            y=values[known],
            name=name,
            customdata=time,
            hovertemplate=f"{name} %{{y:.4g}}<br>step %{{x:,}}, %{{customdata}}<extra></extra>",
            row=row,
            col=1,
            **look,
        )

    def line(shade: str, width: float = 1.8, **extra: Any) -> dict[str, Any]:
        return {"mode": "lines", "line": {"color": colour(shade), "width": width, **extra}}

    if np.isfinite(guessed).any():
        draw("a guess", guessed, 1, line("ink", 1.3, dash="dash"))
    if np.isfinite(optimum).any():
        draw("lowest possible loss", optimum, 1, line("soft", 1.3, dash="dot"))
    if np.isfinite(loss).any():
        # The training loss is of less interest than a held-out one.
        first = line("soft", 1.3) if held_out else line("accent")
        draw("training loss" if held_out else "loss", loss, 1, first)
    if held_out:
        draw("held-out loss", validation, 1, _marked(line("accent", 2.0), validation))
    if panels == 2:
        draw("R²", score, 2, _marked(line("second"), score))
    if best_step is not None:
        # A trace and not a shape, so that the legend names it and nothing is written over it.
        heights = np.concatenate([loss, validation, guessed])
        figure.add_scatter(
            x=np.array([best_step, best_step]),
            y=np.array([np.nanmin(heights), np.nanmax(heights)]),
            name=f"kept: step {best_step:,}",
            hoverinfo="name",
            row=1,
            col=1,
            **line("good", 1.6, dash="dot"),
        )
    figure.update_xaxes(axis(exponentformat="none", separatethousands=True))
    figure.update_xaxes(axis("step"), row=panels)
    figure.update_yaxes(axis("loss (nats)", nticks=6), row=1)
    if panels == 2:
        figure.update_yaxes(axis("R² (percent)", nticks=6), row=2)
    height = 340 if panels == 1 and held_out else 70 + 190 * panels
    several = len(figure.data) > panels  # one line needs no legend
    figure.update_layout(**base_layout(height, 320, showlegend=several, legend=LEGEND))
    return figure


def training_section(
    history: Sequence[Mapping[str, Any]],
    best_step: int | None = None,
    *,
    guess: float | None = None,
) -> Section:
    """Return training over its steps; see `training_curve` for the arguments."""

    def measured(key: str) -> bool:
        return any(entry.get(key) is not None for entry in history)

    caption = "Contrastive loss over the steps of training"
    if measured("validation"):
        caption += ", on training rows and on held-out rows"
    if measured("optimum"):
        caption += ", with the lowest loss that any encoder can reach (dotted)"
    if measured("score"):
        caption += "; below it the score of the encoder at that step"
    caption += "."
    if guess is not None:
        caption += " The dashed line is the loss of a guess; below it something was learnt."
    if best_step is not None:
        caption += (
            f" The vertical line marks step {best_step:,}, whose encoder was kept because its "
            "held-out loss was lowest."
        )
    alt = (
        "Line plot of the loss"
        + (", the held-out loss" if measured("validation") else "")
        + (" and that of a guess" if guess is not None else "")
        + ", and of the score where measured, over training steps."
    )
    return Section(
        "Training", [Figure(training_curve(history, best_step, guess=guess), caption, alt=alt)]
    )


def _marked(look: dict[str, Any], values: NDArray[np.float64]) -> dict[str, Any]:
    # Marks show where values were measured, as long as they do not hide the line.
    if np.isfinite(values).sum() > 60:
        return look
    return {**look, "mode": "lines+markers", "marker": {"size": 5}}
