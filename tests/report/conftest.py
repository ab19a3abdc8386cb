"""Fixtures of the report tests: one small run, as plain arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demix.metrics.score import Score

# tests/browser.py serves several folders of tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture(scope="session")
def run() -> dict[str, Any]:
    """Arguments of `recovery_page` for three factors recovered out of order, one with a sign."""
    factors = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    assignment = np.array([2, 0, 1])
    latents = np.empty_like(factors)
    latents[:, assignment] = factors * [1, -1, 1]
    meaning = {"certifies": "One factor per latent.", "leaves_open": "Anything beyond the samples."}
    return {
        "title": "Three factors",
        "summary": "A short summary.",
        "factors": factors,
        "latents": latents,
        "scores": {
            "affine_r2": Score(
                0.993125, baseline=lambda: 0.1, interval=lambda: (0.99, 0.995), **meaning
            ),
            "mean_correlation": Score(
                0.991,
                baseline=lambda: 0.41,
                interval=lambda: (0.985, 0.9935),
                assignment=assignment,
                **meaning,
            ),
        },
        "history": [
            {"step": 0, "seconds": 0.0, "loss": 6.0, "optimum": 4.5, "score": 40.0},
            {"step": 100, "seconds": 0.5, "loss": 5.0, "optimum": 4.5, "score": None},
            {"step": 200, "seconds": 1.0, "loss": 4.6, "optimum": 4.5, "score": 99.0},
        ],
        "provenance": {"seed": 0},
    }
