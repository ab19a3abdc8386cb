"""Sections that pages share: known factors beside latents, and the course of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix._support.errors import DemixError
from demix.report.blocks import Block, Figure, Section, Table, Text
from demix.report.figures import correlation_heatmap, recovered_scatter
from demix.report.style import axis_title, number, shown
from demix.report.training import training_curve

CERTIFICATE_HEADER = (
    "Score",
    "Value",
    "95 % interval",
    "Chance",
    "What it certifies",
    "What it does not certify",
)


def recovery_sections(
    *,
    factors: ArrayLike,
    latents: ArrayLike,
    aligned_latents: ArrayLike,
    correlation: ArrayLike,
    assignment: Sequence[int],
    certificate: Sequence[Mapping[str, Any]],
    names: Sequence[str] | None = None,
) -> list[Section]:
    """Known factors beside the latents: scatter plots, matching, and what the scores certify.

    Parameters
    ----------
    factors : array_like, shape (N, n)
        True factors. Without any (n = 0) nothing is drawn.
    latents : array_like, shape (N, m)
        Recovered latents as they came out of training.
    aligned_latents : array_like, shape (N, n)
        Recovered latents with column ``i`` matched to factor ``i``.
    correlation : array_like, shape (n, m)
        Correlation of each factor with each column of `latents`.
    assignment : sequence of int, length n
        ``assignment[i]`` is the column of `latents` matched to factor ``i``.
    certificate : sequence of dict
        Entries with ``score``, ``value``, ``low``, ``high``, ``baseline``, ``certifies``,
        ``does_not_certify``; may be empty.
    names : sequence of str, optional
        Names of the factors.

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(size=(40, 2))
    >>> sections = recovery_sections(
    ...     factors=z,
    ...     latents=z[:, ::-1],
    ...     aligned_latents=z,
    ...     correlation=[[0.0, 1.0], [1.0, 0.0]],
    ...     assignment=[1, 0],
    ...     certificate=[],
    ... )
    >>> [section.title for section in sections]
    ['True against recovered', 'Which latent is which factor']
    """
    found, table = np.asarray(latents, dtype=float), np.asarray(correlation, dtype=float)
    n, m = _checked_shape(np.shape(factors), found, table, assignment)
    certified = []
    if certificate:
        certified = [Section("What is certified, and what is not", [_certified(certificate)])]
    if n == 0:
        return certified
    order = [int(column) for column in assignment]
    rows = list(names) if names is not None else [f"factor {i + 1}" for i in range(n)]
    scatter = Figure(
        recovered_scatter(factors, aligned_latents, names=rows),
        "Each panel sets one true factor (across) against the recovered latent matched to it "
        "(up). A factor that was recovered up to scale, sign and offset lies on a straight line; "
        "r is the correlation over all samples.",
        alt=f"{n} scatter plots of true factors against recovered latents.",
    )
    return [
        Section("True against recovered", [scatter]),
        Section("Which latent is which factor", _matching(rows, found, table, order, m)),
        *certified,
    ]


def training_section(history: Sequence[Mapping[str, Any]], best_step: int | None = None) -> Section:
    """Training over its steps; see `training_curve` for the arguments.

    Examples
    --------
    >>> section = training_section([{"step": 0, "seconds": 0.0, "loss": 6.2}])
    >>> section.body[0].caption
    'Contrastive loss over the steps of training.'
    """
    held_out = any(entry.get("validation") is not None for entry in history)
    caption = "Contrastive loss over the steps of training"
    if held_out:
        caption += ", on the rows it learns from and on rows held out"
    if any(entry.get("optimum") is not None for entry in history):
        caption += ", with the lowest loss that any encoder can reach (dotted)"
    if any(entry.get("score") is not None for entry in history):
        caption += "; below it the score of the encoder as it was at that step"
    caption += "."
    has_null = any(entry.get("null") is not None for entry in history)
    if has_null:
        caption += (
            " The dashed line is the null: the held-out loss of the same encoder with positives or "
            "labels exchanged at random. What was learnt is the distance below it."
        )
    if best_step is not None:
        caption += (
            f" The vertical line marks step {best_step:,}, whose encoder was kept because its "
            "held-out loss was lowest."
        )
    curve = Figure(
        training_curve(history, best_step=best_step),
        caption,
        alt="Line plot of the loss"
        + (", the held-out loss" if held_out else "")
        + (" and the null" if has_null else "")
        + ", and of the score where measured, over training steps.",
    )
    return Section("Training", [curve])


def _checked_shape(
    factors_shape: tuple[int, ...],
    latents: NDArray[np.float64],
    correlation: NDArray[np.float64],
    assignment: Sequence[int],
) -> tuple[int, int]:
    if len(factors_shape) != 2 or latents.ndim != 2:
        raise DemixError(
            f"factors and latents must be matrices with one row per sample, but have shapes "
            f"{factors_shape} and {latents.shape}; reshape them to (N, n) and (N, m)"
        )
    n, m = factors_shape[1], latents.shape[1]
    if correlation.shape != (n, m):
        raise DemixError(
            f"correlation must have shape (factors, latents) = ({n}, {m}), but has "
            f"{correlation.shape}; pass the correlations of the unmatched latents"
        )
    if len(assignment) != n or not all(0 <= column < m for column in assignment):
        raise DemixError(
            f"assignment must name one latent from 0 to {m - 1} for each of {n} factors, but is "
            f"{list(assignment)}; pass the columns found by matching"
        )
    return n, m


def _matching(
    rows: list[str],
    latents: NDArray[np.float64],
    correlation: NDArray[np.float64],
    order: list[int],
    m: int,
) -> list[Block]:
    # Latents matched to no factor keep their place behind the matched ones.
    rest = [column for column in range(m) if column not in order]
    after = order + rest
    spread = latents.std(axis=0)
    lines = []
    for i, (name, column) in enumerate(zip(rows, order, strict=True)):
        others = np.delete(np.abs(correlation[i]), column)
        runner_up = "–" if others.size == 0 else number(float(np.nanmax(others, initial=0.0)), 3)
        matched = number(float(correlation[i, column]), 3)
        lines.append([name, str(column + 1), matched, runner_up, number(float(spread[column]), 3)])
    before_figure = correlation_heatmap(
        correlation, rows, [str(column + 1) for column in range(m)], "Before matching"
    )
    after_figure = correlation_heatmap(
        correlation[:, after], rows, [str(column + 1) for column in after], "After matching"
    )
    for figure in (before_figure, after_figure):
        figure.update_xaxes(title=axis_title("recovered latent"))
    return [
        Text(
            "Training cannot know in which order the factors are numbered, nor their signs. "
            "Matching assigns to each factor the latent that belongs to it; it changes the order "
            "of the columns, not their contents."
        ),
        Figure(
            before_figure,
            "Correlation of each factor (row) with each recovered latent (column) in the order in "
            "which training left them.",
            alt="Heat map of the correlations of factors and latents before matching.",
            half=True,
        ),
        Figure(
            after_figure,
            "The same columns in matched order. Full recovery shows a diagonal of ±1 and nothing "
            "beside it.",
            alt="Heat map of the correlations of factors and latents after matching.",
            half=True,
        ),
        Table(
            ["Factor", "Matched latent", "Correlation", "Next largest |r|", "Spread of the latent"],
            lines,
            "The latent matched to each factor, its correlation with the factor, the largest "
            "absolute correlation of the factor with any other latent, and the standard deviation "
            "of the latent (near zero means that it collapsed).",
        ),
    ]


def _certified(certificate: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        CERTIFICATE_HEADER,
        [
            [
                entry["score"],
                shown(entry["value"], ".4f"),
                f"{shown(entry['low'], '.4f')} to {shown(entry['high'], '.4f')}",
                shown(entry["baseline"], ".4f"),
                entry["certifies"],
                entry["does_not_certify"],
            ]
            for entry in certificate
        ],
        "Each score beside its bootstrap interval over the samples that score, its chance level "
        "(the same score for shuffled rows), what its best value would certify, and what that "
        "would still leave open.",
    )
