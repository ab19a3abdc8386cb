"""What ``demo`` and ``evaluate`` share: all scores of a representation, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demix.metrics.correlation import correlation_matrix
from demix.metrics.registry import best, label, scored_columns
from demix.metrics.score import Score
from demix.report.blocks import Page
from demix.report.recovery import recovery_page


def meaning(name: str, score: Score) -> str:
    """Say what the best value of a score would certify."""
    return f"{best(name)}: {score.certifies}"


def scores_as_data(
    scores: dict[str, Score], names: Sequence[str], categorical: np.ndarray
) -> dict[str, Any]:
    """Return scores as plain data for JSON, with the names of the factors that each is of."""
    data = {}
    for name, score in scores.items():
        arrays = {
            "per_factor": score.per_factor,
            "per_latent": score.per_latent,
            "assignment": score.assignment,
        }
        data[name] = {
            "value": float(score),
            "low": score.low,
            "high": score.high,
            "baseline": score.baseline,
            "factors": [names[i] for i in scored_columns(name, categorical)],
            **{key: array.tolist() for key, array in arrays.items() if array is not None},
            "certifies": score.certifies,
            "leaves_open": score.leaves_open,
        }
    return data


def recovery_report(
    *,
    title: str,
    summary: str,
    latents: np.ndarray,
    factors: np.ndarray,
    scores: dict[str, Score],
    history: list[dict[str, float | None]],
    seconds: float | None,
    provenance: dict[str, Any],
    names: Sequence[str] | None = None,
) -> Page:
    """Lay scores and arrays out on a page; factors are the continuous ones ``(N, n)``."""
    headline: dict[str, float | str] = {}
    if "affine_r2" in scores:
        headline |= {
            "held-out R²": f"{100 * scores['affine_r2']:.2f} %",
            "held-out MCC": f"{100 * scores['mean_correlation']:.2f} %",
            "chance level of R²": f"{100 * scores['affine_r2'].baseline:.2f} %",
        }
    if "linear_accuracy" in scores:
        headline |= {
            "held-out accuracy of categories": f"{100 * scores['linear_accuracy']:.2f} %",
            "chance level of it": f"{100 * scores['linear_accuracy'].baseline:.2f} %",
        }
    if seconds is not None:
        headline["training"] = f"{seconds:.0f} s"
    return recovery_page(
        title=title,
        summary=summary,
        scores=headline,
        history=history,
        provenance=provenance,
        **matched(latents, factors, scores, names),
    )


def matched(
    latents: np.ndarray,
    factors: np.ndarray,
    scores: dict[str, Score],
    names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what a page shows of latents beside factors, as its arguments."""
    # Without continuous factors, and for those without a latent, there is nothing to draw.
    matching = np.zeros(0, dtype=int)
    correlation = np.zeros((0, latents.shape[1]))
    if "mean_correlation" in scores:
        found = scores["mean_correlation"].assignment
        assert found is not None
        matching, correlation = found, correlation_matrix(latents, factors)
    shown = np.flatnonzero(matching >= 0)
    signs = np.sign(correlation[shown, matching[shown]])
    called = names or [f"factor {i + 1}" for i in range(factors.shape[1])]
    return {
        "factors": factors[:, shown],
        "latents": latents,
        "aligned_latents": latents[:, matching[shown]] * np.where(signs == 0, 1, signs),
        "correlation": correlation[shown],
        "assignment": matching[shown].tolist(),
        "certificate": [
            {
                "score": label(name),
                "value": float(score),
                "low": score.low,
                "high": score.high,
                "baseline": score.baseline,
                "certifies": meaning(name, score),
                "does_not_certify": score.leaves_open,
            }
            for name, score in scores.items()
        ],
        "names": [called[i] for i in shown.tolist()],
    }
