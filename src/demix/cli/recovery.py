"""What ``demo`` and ``evaluate`` share: all scores of a representation, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demix.report import Page, recovery_page
from demix.scores import (
    Score,
    affine_r2,
    correlation_matrix,
    isometry_error,
    mean_correlation,
    orthogonal_r2,
)

_LABELS = {
    "affine_r2": "affine R²",
    "orthogonal_r2": "orthogonal R²",
    "mean_correlation": "MCC (Pearson)",
    "mean_correlation_spearman": "MCC (Spearman)",
    "isometry_error": "isometry error (L2)",
}


def all_scores(latents: np.ndarray, factors: np.ndarray) -> dict[str, Score]:
    """Return every score that is defined for latents ``(N, m)`` and factors ``(N, n)``."""
    scores = {"affine_r2": affine_r2(latents, factors)}
    if np.shape(latents)[1] == np.shape(factors)[1]:
        scores["orthogonal_r2"] = orthogonal_r2(latents, factors)
    scores["mean_correlation"] = mean_correlation(latents, factors)
    scores["mean_correlation_spearman"] = mean_correlation(latents, factors, method="spearman")
    scores["isometry_error"] = isometry_error(latents, factors, similarity=2)
    return scores


def meaning(name: str, score: Score) -> str:
    """Say what the best value of a score would certify."""
    if name == "isometry_error":
        return f"0: {score.certifies}"
    return f"1: the factors up to {score.certifies}"


def scores_as_data(scores: dict[str, Score]) -> dict[str, Any]:
    """Return scores as plain data for JSON."""
    return {
        name: {
            "value": float(score),
            "baseline": score.baseline,
            "per_factor": score.per_factor.tolist(),
            "certifies": score.certifies,
            "leaves_open": score.leaves_open,
        }
        | ({} if score.assignment is None else {"assignment": score.assignment.tolist()})
        for name, score in scores.items()
    }


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
) -> Page:
    """Lay scores and arrays out on a page."""
    headline: dict[str, float | str] = {
        "held-out R²": f"{100 * scores['affine_r2']:.2f} %",
        "held-out MCC": f"{100 * scores['mean_correlation']:.2f} %",
        "chance level of R²": f"{100 * scores['affine_r2'].baseline:.2f} %",
    }
    if seconds is not None:
        headline["training"] = f"{seconds:.0f} s"
    return recovery_page(
        title=title,
        summary=summary,
        scores=headline,
        history=history,
        provenance=provenance,
        **matched(latents, factors, scores),
    )


def matched(
    latents: np.ndarray,
    factors: np.ndarray,
    scores: dict[str, Score],
    names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what a page shows of latents beside factors, as its arguments."""
    matching = scores["mean_correlation"].assignment
    assert matching is not None
    # Factors without a latent (fewer latents than factors) are left out of the pictures.
    shown = np.flatnonzero(matching >= 0)
    correlation = correlation_matrix(latents, factors)
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
                "score": _LABELS[name],
                "value": float(score),
                "baseline": score.baseline,
                "certifies": meaning(name, score),
                "does_not_certify": score.leaves_open,
            }
            for name, score in scores.items()
        ],
        "names": [called[i] for i in shown.tolist()],
    }
