"""The section about training: losses and scores over its steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from demix.report.blocks import Figure, Section
from demix.report.figures import column, thinned
from demix.report.style import axis, base_layout, colour, lay_out, styled
from demix.report.words import said

MOST_STEPS = 1000  # points of a line; more would not be seen and would only make the file larger


def training_sections(
    history: Sequence[Mapping[str, Any]], best: int | None = None, *, guess: float | None = None
) -> list[Section]:
    """Return loss, held-out loss and score over the steps of training, where they were measured.

    Entries of ``history`` have ``step``, ``seconds`` and ``loss``, and possibly ``validation`` (the
    held-out loss), ``score`` (R² in percent) and ``optimum`` (the lowest possible loss); a value
    that is missing, None or not finite is left out. A vertical line marks ``best``, whose
    encoder was kept, a horizontal one the loss of a ``guess``.
    """
    steps, given = column(history, "step"), ("loss", "validation", "optimum", "score")
    measured = {key for key in given if np.isfinite(steps + column(history, key)).any()}
    if not measured & {"loss", "validation"}:
        return []
    words = said("training", best_step=f"{best or 0:,}")
    caption = words["loss"]
    caption += "".join(words[key] for key in ("validation", "optimum", "score") if key in measured)
    caption += "." + (words["guess"] if guess is not None else "")
    caption += words["best"] if best is not None else ""
    curve = _training_curve(history, best, guess, held_out="validation" in measured)
    return [Section("Training", [Figure(curve, caption, words["alt"])])]


def _training_curve(
    history: Sequence[Mapping[str, Any]], best: int | None, guess: float | None, *, held_out: bool
) -> go.Figure:
    steps, seconds = column(history, "step"), column(history, "seconds")
    loss, validation = column(history, "loss"), column(history, "validation")
    score = column(history, "score")
    guessed = np.full(len(steps), np.nan if guess is None else guess)
    panels = 2 if np.isfinite(score).any() else 1
    figure = make_subplots(rows=panels, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    # The training loss is of less interest than a held-out one.
    own = ("training loss", loss, 1, "soft") if held_out else ("loss", loss, 1, "accent")
    for name, values, row, shade, dash in (
        ("a guess", guessed, 1, "ink", "dash"),
        ("lowest possible loss", column(history, "optimum"), 1, "soft", "dot"),
        (*own, "solid"),
        ("held-out loss", validation, 1, "accent", "solid"),
        ("R²", score, 2, "second", "solid"),
    ):
        known = np.flatnonzero(np.isfinite(steps) & np.isfinite(values))
        if known.size == 0:
            continue
        # Marks show where values were measured, as long as they do not hide the line.
        marked = values is not loss and dash == "solid" and known.size <= 60
        known = known[thinned(values[known], MOST_STEPS)]
        figure.add_scatter(
            x=steps[known],
            y=values[known],
            name=name,
            mode="lines+markers" if marked else "lines",
            line={"color": colour(shade), "width": 1.8 if dash == "solid" else 1.3, "dash": dash},
            marker={"size": 5},
            customdata=[f"{t:.1f} s" if np.isfinite(t) else "time unknown" for t in seconds[known]],
            hovertemplate=f"{name} %{{y:.4g}}<br>step %{{x:,}}, %{{customdata}}<extra></extra>",
            row=row,
            col=1,
        )
    if best is not None:
        heights = np.concatenate([loss, validation, guessed])
        ends = np.array([np.nanmin(heights), np.nanmax(heights)])
        look = {"name": f"kept: step {best:,}", "row": 1, "col": 1, **styled("kept")}
        figure.add_scatter(x=np.array([best, best]), y=ends, **look)
    titles = ["step"] if panels == 1 else [None, "step"]
    x = [axis(title, exponentformat="none", separatethousands=True) for title in titles]
    y = [axis(title, nticks=6) for title in ("loss (nats)", "R² (percent)")[:panels]]
    height = 340 if panels == 1 and held_out else 70 + 190 * panels
    several = len(figure.data) > panels  # one line needs no legend
    lay_out(figure, base_layout(height, 320, showlegend=several, legend=styled("legend")), x, y)
    return figure
