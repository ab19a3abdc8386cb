"""Synthetic fits for the tests of their pages, as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from demix.report.blocks import Verdict
from demix.report.sections import recovery_sections

GAIN = {"bits": 2.0, "low": 1.8, "high": 2.1, "loss": 4.85, "null": 6.24, "level": 0.95}
HISTORY = [
    {
        "step": step,
        "seconds": step / 50,
        "loss": 6.2 - step / 500,
        "validation": held_out,
        "null": 6.24,
    }
    for step, held_out in ((0, 6.24), (100, None), (200, 5.5), (300, 4.85), (400, 4.9))
]


def fit(rows: int = 400, n: int = 3, **changed: Any) -> dict[str, Any]:
    """Arguments of `fit_page` for a time series whose factors are known."""
    factors = np.random.default_rng(0).normal(size=(rows, n))
    assignment = [*range(1, n), 0]
    latents = np.empty_like(factors)
    latents[:, assignment] = factors
    known = recovery_sections(
        factors=factors,
        latents=latents,
        aligned_latents=factors,
        correlation=np.corrcoef(factors.T, latents.T)[:n, n:],
        assignment=assignment,
        certificate=[],
    )
    return {
        "title": "A fit",
        "summary": "What was found.",
        "verdict": Verdict("good", "It is better than chance."),
        "gain": GAIN,
        "history": HISTORY,
        "best_step": 300,
        "latents": latents,
        "time": np.arange(rows),
        "facts": {"space": "real", "rows": rows},
        "notes": ["Column 3 is constant."],
        "recovery": known,
        "provenance": {"seed": 0, "data": "sha256 12ab"},
        **changed,
    }


def blobs(count: int = 300, side: int = 16, channels: int = 3) -> dict[str, Any]:
    """Images of a blob that moves across (latent 0) and down (latent 1)."""
    place = np.random.default_rng(1).uniform(-1, 1, size=(count, 2))
    down, across = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    x, y = 0.7 * place[:, :1, None], 0.7 * place[:, 1:, None]
    blob = np.exp(-((across - x) ** 2 + (down - y) ** 2) / 0.05)
    shades = np.array([1.0, 0.6, 0.2])[:channels, None, None]
    return {"images": blob[:, None] * shades, "image_latents": place}


def runs(*names: str) -> list[dict[str, Any]]:
    """Arguments of `compare_page` for runs that differ in their space."""
    return [
        {
            "name": name,
            "gain": {**GAIN, "bits": 2.0 - index},
            "facts": {"space": f"space {index}", "conditional": "Laplace", "seed": 0},
            "history": HISTORY,
        }
        for index, name in enumerate(names)
    ]
