"""The page about what several runs agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from demix._support.errors import DemixError
from demix.report.blocks import Block, Facts, Figure, Page, Section, Table, Text, Verdict
from demix.report.dots import interval_dots
from demix.report.figures import recovered_scatter
from demix.report.fit import courses_block, pairs_block
from demix.report.gains import gain_of
from demix.report.records import matrix_of, names_of, numbers_of
from demix.report.style import colour, number, plain, shown

# More panels of one dimension each would be too small to see anything in.
MOST_COMPARED = 10


def consensus_page(
    *,
    title: str,
    summary: str,
    verdict: Verdict,
    stability: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    pair: tuple[ArrayLike, ArrayLike],
    pair_names: tuple[str, str],
    latents: ArrayLike,
    facts: Mapping[str, object],
    provenance: Mapping[str, object],
    time: ArrayLike | None = None,
    notes: Sequence[str] = (),
) -> Page:
    """Page of a consensus: stability of each dimension, two runs side by side, latents.

    Parameters
    ----------
    title, summary : str
        Heading and opening paragraph.
    verdict : Verdict
        One sentence of judgement.
    stability : dict
        ``values``, ``low``, ``high`` and ``null`` of shape (n,): the held-out R² of each dimension,
        its 95 % interval, and that of shuffled rows; ``untrained``, the mean R² of encoders that
        were not trained; ``threshold``, from where on a dimension counts as stable; ``stable``,
        whether each does.
    runs : sequence of dict
        ``name``, ``r2`` (the mean over dimensions) and ``gain`` (see `fit_page`) of each run.
    pair : two array_like, shape (K, n)
        Latents of two runs for the same held-out rows, in the coordinates of the consensus.
    pair_names : two str
        What these runs are called.
    latents : array_like, shape (N, n)
        Consensus latents of the rows that are shown.
    facts : dict
        What was assumed and used, by name.
    provenance : dict
        What is needed to make the page again.
    time : array_like, shape (N,), optional
        Row number of each row of `latents`, where their order means something.
    notes : sequence of str
        Warnings, one sentence or paragraph each.

    Returns
    -------
    Page

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(size=(40, 2))
    >>> gain = {"bits": 1.5, "low": 1.2, "high": 1.7, "loss": 5.2, "null": 6.24}
    >>> page = consensus_page(
    ...     title="Two runs",
    ...     summary="They agree.",
    ...     verdict=Verdict("good", "Stable."),
    ...     stability={
    ...         "values": [0.9, 0.9],
    ...         "low": [0.8, 0.8],
    ...         "high": [0.95, 0.95],
    ...         "null": [0.0, 0.0],
    ...         "untrained": 0.3,
    ...         "threshold": 0.8,
    ...         "stable": [True, True],
    ...     },
    ...     runs=[{"name": "seed 0", "r2": 0.9, "gain": gain}],
    ...     pair=(z, z),
    ...     pair_names=("seed 0", "seed 1"),
    ...     latents=z,
    ...     facts={"space": "box"},
    ...     provenance={"seed": 0},
    ... )
    >>> [section.title for section in page.sections]
    ['Result', 'Stability', 'Two runs', 'Latents']
    """
    values = matrix_of(latents, "latents")
    labels = names_of(None, values.shape[1], "dimension")
    sections = [
        Section("Result", _result(verdict, stability, facts)),
        Section("Stability", _stability(stability, labels, runs)),
        Section("Two runs", [_pair(pair, pair_names, labels)]),
        Section("Latents", [pairs_block(values, labels)]),
    ]
    if time is not None:
        sections.append(Section("Time courses", [courses_block(values, time, labels, "row")]))
    if notes:
        paragraphs: list[Block] = [Text(note) for note in notes]
        sections.append(Section("Notes", paragraphs))
    return Page(title, summary, sections, {name: str(value) for name, value in provenance.items()})


def stability_dots(
    names: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    null: ArrayLike,
    *,
    threshold: float,
) -> go.Figure:
    """R² of each dimension as a dot with its interval, beside that of shuffled rows.

    Examples
    --------
    >>> figure = stability_dots(["a"], [0.9], [0.8], [0.95], [0.1], threshold=0.8)
    >>> [trace.name for trace in figure.data]
    ['runs', 'shuffled rows']
    """
    figure = interval_dots(names, values, low, high, title="held-out R²", legend="runs")
    chance = numbers_of(null, "null")
    figure.add_scatter(
        x=chance,
        y=np.arange(len(chance)),
        name="shuffled rows",
        mode="markers",
        marker={"color": colour("second"), "size": 9, "symbol": "x-thin", "line": {"width": 2}},
        marker_line_color=colour("second"),
        customdata=[plain(name) for name in names],
        hovertemplate="%{customdata}, shuffled rows<br>%{x:.3f}<extra></extra>",
    )
    figure.add_vline(x=threshold, line={"color": colour("ink"), "width": 1.3, "dash": "dash"})
    # An R² has no lower end; what is far below zero would squeeze everything else.
    least = float(np.min([0.0, *np.ravel(low), *np.ravel(null)]))
    figure.update_xaxes(range=[max(least, -1.0) - 0.04, 1.04])
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
    )
    return figure


def _result(
    verdict: Verdict, stability: Mapping[str, Any], facts: Mapping[str, object]
) -> list[Block]:
    stable = np.asarray(stability["stable"], dtype=bool)
    body: list[Block] = [
        verdict,
        Facts(
            {
                "stable dimensions": f"{int(stable.sum())} of {len(stable)}",
                "mean held-out R²": number(float(np.mean(stability["values"])), 3),
                "of shuffled rows, at most": number(float(np.max(stability["null"])), 3),
                "of untrained encoders": number(float(stability["untrained"]), 3),
            }
        ),
    ]
    if facts:
        lines = [[name, shown(value)] for name, value in facts.items()]
        body.append(Table(["What", "Value"], lines, "What was assumed and used."))
    return body


def _stability(
    stability: Mapping[str, Any], labels: list[str], runs: Sequence[Mapping[str, Any]]
) -> list[Block]:
    ends = {key: numbers_of(stability[key], key) for key in ("values", "low", "high", "null")}
    wrong = [key for key, found in ends.items() if found.shape != (len(labels),)]
    if wrong:
        raise DemixError(
            f"{wrong[0]} must hold one number per dimension, {len(labels)} in all, but has shape "
            f"{ends[wrong[0]].shape}; measure every dimension"
        )
    threshold = float(stability["threshold"])
    figure = Figure(
        stability_dots(labels, *ends.values(), threshold=threshold),
        "How well each run predicts the consensus of the others on rows that neither runs nor maps "
        "have seen: the mean R² over runs with its 95 % interval over rows and runs. Crosses are "
        "the same with rows shuffled, the largest of ten. A dimension whose interval lies right of "
        f"the dashed line at {threshold:g} is stable.",
        alt=f"Dot plot of the stability of {len(labels)} dimensions with intervals.",
    )
    lines = [
        [label, number(r2, 3), f"{number(low, 3)} to {number(high, 3)}", number(null, 3), told]
        for label, r2, low, high, null, told in zip(
            labels,
            *ends.values(),
            ["stable" if stable else "not stable" for stable in stability["stable"]],
            strict=True,
        )
    ]
    header = ["Dimension", "R²", "95 % interval", "shuffled", "verdict"]
    table = Table(header, lines, "The same in numbers.")
    gains = [gain_of(run["gain"]) for run in runs]
    each = Table(
        ["Run", "mean R²", "gain (bits)", "interval of the gain"],
        [
            [str(run["name"]), number(float(run["r2"]), 3), number(gain.bits, 3), gain.interval]
            for run, gain in zip(runs, gains, strict=True)
        ],
        "Each run against the consensus of the others, and what it knows about held-out positives "
        "or labels. A run whose gain is not above zero has learnt nothing.",
    )
    return [figure, table, each]


def _pair(pair: tuple[ArrayLike, ArrayLike], names: tuple[str, str], labels: list[str]) -> Figure:
    first, second = (matrix_of(z, "latents of a run")[:, :MOST_COMPARED] for z in pair)
    more = len(labels) > MOST_COMPARED
    left_out = f" Shown are the first {MOST_COMPARED} of {len(labels)} dimensions." if more else ""
    return Figure(
        recovered_scatter(first, second, labels[:MOST_COMPARED], across=names[0], up=names[1]),
        f"Held-out rows in the coordinates of the consensus, by the run that agrees most with the "
        f"others ({names[0]}, across) and by the one that agrees least ({names[1]}, up). What both "
        f"found lies on the diagonal; r is the correlation.{left_out}",
        alt=f"{min(len(labels), MOST_COMPARED)} scatter plots of two runs against each other.",
    )
