"""The page that compares several fits."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from demix.metrics.regression import affine_r2
from demix.report import style
from demix.report.blocks import Block, Figure, Page, Section, Table, Text
from demix.report.figures import column, correlation_heatmap, gain_of, interval_dots, thinned
from demix.report.style import axis, base_layout, colour, interval, number, plain, shown, styled
from demix.report.training import MOST_STEPS
from demix.report.words import said

_ROWS = 20_000  # beyond so many rows the agreement gains no digit that matters
_COLOURS = ("accent", "second", "third", "fourth", "fifth", "sixth")
_DASHES = ("solid", "dash", "dot", "dashdot")


def compare_page(
    runs: Sequence[Mapping[str, Any]],
    *,
    agreement: ArrayLike | None = None,
    provenance: Mapping[str, object] | None = None,
) -> Page:
    """Return the page of several runs: gains, what differs, held-out curves, agreement.

    ``runs`` have a ``name`` and a ``gain``, and possibly ``facts`` and ``history``; see `fit_page`.
    For ``agreement`` ``(R, R)`` see `agreement_of`.
    """
    names = [run["name"] for run in runs]
    gains = [gain_of(run["gain"]) for run in runs]
    ends = ([gain[key] for gain in gains] for key in ("bits", "low", "high"))
    label = "information (bits per sample)"
    drawn = interval_dots(names, *ends, title=label, line=0, unit=" bits")
    dots = Figure(drawn, **said("runs", runs=len(runs)))
    sections = [Section("Side by side", [*_numbers(runs, names, gains), dots])]
    histories = [run.get("history") or () for run in runs]
    curves = _gain_curves(names, histories, [gain["ceiling"] for gain in gains])
    if curves is not None:
        sections.append(Section("Training", [Figure(curves, **said("gain curves"))]))
    if agreement is not None:
        heatmap = correlation_heatmap(agreement, names, names, "Agreement of the latents")
        table = Figure(heatmap, **said("agreement", runs=len(names)))
        sections.append(Section("Agreement", [table]))
    summary = "All information is held out. The report of each fit lists its assumptions."
    return Page(f"{len(runs)} fits side by side", summary, sections, provenance or {})


def agreement_of(latents: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the held-out R² of predicting each run's latents (down) from another's (across)."""
    # None if the runs have different rows, or fewer than ten.
    if len({len(z) for z in latents}) > 1 or len(latents[0]) < 10:
        return None
    step = max(1, len(latents[0]) // _ROWS)
    thin = [np.asarray(z[::step], dtype=float) for z in latents]
    return np.array([[1.0 if a is b else max(-1.0, affine_r2(b, a)) for b in thin] for a in thin])


def _numbers(
    runs: Sequence[Mapping[str, Any]], names: Sequence[str], gains: Sequence[Mapping[str, float]]
) -> list[Block]:
    facts = [{str(k): shown(v) for k, v in (run.get("facts") or {}).items()} for run in runs]
    keys = list(dict.fromkeys(key for entry in facts for key in entry))
    cells = {key: [entry.get(key, "–") for entry in facts] for key in keys}
    differing = [key for key in keys if len(set(cells[key])) > 1]
    shared = [f"{key} {cells[key][0]}" for key in keys if key not in differing]
    header = ["Run", *differing, "information (bits)", "95 % interval", "at most", "loss (nats)"]
    rows = []
    for index, (name, gain) in enumerate(zip(names, gains, strict=True)):
        told = [number(gain["bits"], 3), interval(gain["low"], gain["high"])]
        told += [number(gain["ceiling"], 3), number(gain["loss"], 3)]
        rows.append([name, *(cells[key][index] for key in differing), *told])
    table = Table(header, rows, "Settings that differ, and information about held-out data.")
    if not shared:
        return [table]
    return [Text(f"The same for all runs: {', '.join(shared)}."), table]


def _gain_curves(
    names: Sequence[str], runs: Sequence[Sequence[Mapping[str, Any]]], ceilings: Sequence[float]
) -> go.Figure | None:
    """Draw by how many bits each run is better than a guess over its steps, where it is known."""
    figure = go.Figure()
    for index, (name, history, most) in enumerate(zip(names, runs, ceilings, strict=True)):
        steps, held_out = column(history, "step"), column(history, "validation")
        known = np.flatnonzero(np.isfinite(steps) & np.isfinite(held_out))
        if known.size == 0:
            continue
        known = known[thinned(held_out[known], MOST_STEPS)]
        dash = _DASHES[index // len(_COLOURS) % len(_DASHES)]
        shade = colour(_COLOURS[index % len(_COLOURS)])
        figure.add_scatter(
            x=steps[known],
            y=most - held_out[known] / math.log(2),
            name=plain(name),
            mode="lines" if known.size > 1 else "markers",
            line={"color": shade, "width": 1.8, "dash": dash},
            hovertemplate=f"{plain(name)}<br>%{{y:.3f}} bits, step %{{x:,}}<extra></extra>",
        )
    if not figure.data:
        return None
    figure.add_hline(y=0, line=styled("guess"))
    x = axis("step", exponentformat="none", separatethousands=True)
    y = axis("better than a guess (bits per sample)", nticks=6)
    layout = base_layout(400, 420, showlegend=True, legend=styled("legend"))
    style.lay_out(figure, layout, [x], [y])
    return figure
