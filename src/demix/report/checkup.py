"""The page about a check-up: which assumptions hold, and what may be claimed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from demix.report.blocks import Block, Facts, Figure, Page, Section, Table, Verdict, VerdictKind
from demix.report.style import axis, base_layout, colour, lay_out, number, plain, shown, styled
from demix.report.words import said

_GRADES = said("grades")
_MARKS = {"pass": "✓ pass", "warn": "! warn", "fail": "✗ fail", "skipped": "– not checked"}


def checkup_page(
    found: Mapping[str, Any], *, title: str = "Check-up", provenance: Mapping[str, object]
) -> Page:
    """Return the page of a check-up, ``found`` as in ``checkup.json``."""
    checks = found["checks"]
    kind: VerdictKind = "bad" if found["supported"] == "none" else "good"
    warned = any(check["verdict"] == "warn" for check in checks)
    if found["supported"] == "undecided" or (kind == "good" and warned):
        kind = "neutral"
    table = Table(
        ["Assumption", "Verdict", "Found", "Passes up to", "Finding", "Next step"],
        [
            [
                *(check["name"], _MARKS[check["verdict"]]),
                *(shown(check[key], ".3f") for key in ("statistic", "allowed")),
                *(check["sentence"], check["advice"]),
            ]
            for check in checks
        ],
        **said("checks"),
    )
    grade = Facts({_GRADES[name]: number(value, 3) for name, value in found["grade"].items()})
    claim = Section("What may be claimed", [Verdict(kind, found["sentence"]), grade])
    sections = [claim, Section("Checks", [table])]
    figures: list[Block] = [
        Figure(
            check_figure(check),
            f"{check['name'].capitalize()}: {check['sentence']}",
            alt=f"Statistic {shown(check['statistic'], '.3f')} and its null; it passes up to "
            f"{shown(check['allowed'], '.3f')}.",
            half=True,
        )
        for check in checks
        if check["statistic"] is not None
    ]
    if figures:
        sections.append(Section("Each check against chance", figures))
    words = said("checkup", supported=found["supported"], theorem=found["theorem"])
    summary = words["text"] + (words["theorem"] if found["theorem"] is not None else "")
    return Page(title, summary, sections, provenance)


def check_figure(check: Mapping[str, Any]) -> go.Figure:
    """Draw the null of a check as marks, its statistic as a line, and where it passes."""
    null = np.asarray(check["null"], dtype=float)
    statistic, allowed, margin = check["statistic"], check["allowed"], check["margin"]
    values = [0.0, statistic, allowed + margin, *null.tolist()]
    low, high = min(values), max(values)
    pad = 0.05 * (high - low or 1.0)
    ends, figure = [low - pad, high + pad], go.Figure()
    figure.add_vrect(ends[0], allowed, fillcolor=colour("accent"), opacity=0.12, line_width=0)
    if len(null):
        figure.add_scatter(x=null, y=np.linspace(0.15, 0.85, len(null)), **styled("chance"))
    figure.add_scatter(x=[statistic, statistic], y=[0, 1], **styled("found"))
    x = axis(plain(check["unit"]), range=ends, nticks=5)
    y = axis(showticklabels=False, range=[0, 1], showgrid=False)
    lay_out(figure, base_layout(height=180, min_width=280, showlegend=False), [x], [y])
    return figure
