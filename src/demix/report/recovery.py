"""The page about a recovery: true factors against the latents that training found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demix._support.validation import check_pair
from demix.metrics.registry import label
from demix.metrics.regression import correlate
from demix.metrics.score import Score
from demix.report.blocks import Block, Facts, Figure, Page, Section, Table, Text
from demix.report.figures import correlation_heatmap, names_of, recovered_scatter
from demix.report.style import axis, number, shown
from demix.report.training import training_sections
from demix.report.words import said


def recovery_page(
    title: str,
    summary: str,
    latents: ArrayLike,
    factors: ArrayLike,
    scores: Mapping[str, Score],
    *,
    provenance: Mapping[str, object],
    history: Sequence[Mapping[str, Any]] = (),
    seconds: float | None = None,
    names: Sequence[str] | None = None,
) -> Page:
    """Return the page of one run: true against recovered, correlations, scores, training.

    Recovered latents ``(N, m)`` and true continuous factors ``(N, n)``, called ``names``, have
    ``scores``, see :func:`demix.all_scores`; there may be no factors. For the ``history`` of
    training, which took ``seconds``, see `training_sections`.
    """
    headline: dict[str, str] = {}
    if "affine_r2" in scores:
        headline |= {
            "held-out R²": _percent(scores["affine_r2"]),
            "held-out MCC": _percent(scores["mean_correlation"]),
            "chance level of R²": _percent(scores["affine_r2"].baseline),
        }
    if "linear_accuracy" in scores:
        headline |= {
            "held-out accuracy of categories": _percent(scores["linear_accuracy"]),
            "chance level of the accuracy": _percent(scores["linear_accuracy"].baseline),
        }
    if seconds is not None:
        headline["training"] = f"{seconds:.0f} s"
    sections = [
        Section("Result", [Facts(headline)]),
        *recovery_sections(latents, factors, scores, names),
    ]
    sections += training_sections(history)
    return Page(title, summary, sections, provenance)


def recovery_sections(
    latents: ArrayLike,
    factors: ArrayLike,
    scores: Mapping[str, Score],
    names: Sequence[str] | None = None,
) -> list[Section]:
    """Return known factors against latents: scatter plots, matching, what the scores certify."""
    # Without continuous factors, and for those without a latent, nothing is drawn.
    found, true = np.asarray(latents, dtype=float), np.asarray(factors)
    sections = []
    if "mean_correlation" in scores:
        matching = np.asarray(scores["mean_correlation"].assignment)
        drawn = np.flatnonzero(matching >= 0)
        order = matching[drawn]
        correlation = correlate(*check_pair(found, true))[drawn]
        signs = np.sign(correlation[np.arange(len(drawn)), order])
        called = names_of(names, true.shape[1], "factor")
        rows = [called[i] for i in drawn.tolist()]
        turned = found[:, order] * np.where(signs == 0, 1, signs)
        shown_factors = recovered_scatter(true[:, drawn], turned, rows)
        scatter = Figure(shown_factors, **said("recovered", factors=len(rows)))
        sections = [
            Section("True against recovered", [scatter]),
            Section(
                "Which latent is which factor", _matching(rows, found, correlation, order.tolist())
            ),
        ]
    if scores:
        sections.append(Section("What is certified, and what is not", [certified(scores)]))
    return sections


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _matching(
    rows: list[str], latents: np.ndarray, correlation: np.ndarray, order: list[int]
) -> list[Block]:
    m = latents.shape[1]
    after = order + [column for column in range(m) if column not in order]  # others last
    spread = latents.std(axis=0)
    lines = []
    for i, (name, column) in enumerate(zip(rows, order, strict=True)):
        others = np.delete(np.abs(correlation[i]), column)
        runner_up = "–" if others.size == 0 else number(float(np.nanmax(others, initial=0.0)), 3)
        matched = number(float(correlation[i, column]), 3)
        lines.append([name, str(column + 1), matched, runner_up, number(float(spread[column]), 3)])

    def heatmap(columns: list[int], when: str) -> Figure:
        figure = correlation_heatmap(
            correlation[:, columns], rows, [str(c + 1) for c in columns], f"{when} matching"
        )
        figure.update_xaxes(title=axis("recovered latent")["title"])
        return Figure(figure, **said(f"{when.lower()} matching"), half=True)

    words = said("matching")
    header = ["Factor", "Matched latent", "Correlation", "Next largest |r|", "Spread of the latent"]
    return [
        Text(words["text"]),
        heatmap(list(range(m)), "Before"),
        heatmap(after, "After"),
        Table(header, lines, words["caption"]),
    ]


def certified(scores: Mapping[str, Score]) -> Table:
    """Return each score with what its best value certifies."""
    return Table(
        ["Score", "Value", "95 % interval", "Chance", "Certifies", "Leaves open", "Trusted"],
        [
            [
                *(label(name), shown(float(score), ".4f")),
                f"{shown(score.low, '.4f')} to {shown(score.high, '.4f')}",
                shown(score.baseline, ".4f"),
                *(f"{score.best}: {score.certifies}", score.leaves_open),
                f"no: {score.doubts}" if score.doubts else f"with {score.trusted}",
            ]
            for name, score in scores.items()
        ],
        **said("certified"),
    )
