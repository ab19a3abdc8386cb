"""Fixtures of the report tests: one small run, as plain arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# tests/browser.py serves several folders of tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture(scope="session")
def run() -> dict[str, Any]:
    """Arguments of `recovery_page` for three factors recovered out of order, one with a sign."""
    factors = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    assignment = [2, 0, 1]
    latents = np.empty_like(factors)
    latents[:, assignment] = factors * [1, -1, 1]
    return {
        "title": "Three factors",
        "summary": "A short summary.",
        "scores": {"R²": 99.3125, "MCC": "99.1 %"},
        "factors": factors,
        "latents": latents,
        "aligned_latents": latents[:, assignment],
        "correlation": np.corrcoef(factors.T, latents.T)[:3, 3:],
        "assignment": assignment,
        "history": [
            {"step": 0, "seconds": 0.0, "loss": 6.0, "optimum": 4.5, "score": 40.0},
            {"step": 100, "seconds": 0.5, "loss": 5.0, "optimum": 4.5, "score": None},
            {"step": 200, "seconds": 1.0, "loss": 4.6, "optimum": 4.5, "score": 99.0},
        ],
        "certificate": [
            {
                "score": "MCC",
                "value": 0.991,
                "low": 0.985,
                "high": 0.9935,
                "baseline": 0.41,
                "certifies": "One factor per latent.",
                "does_not_certify": "Anything beyond the samples.",
            }
        ],
        "provenance": {"seed": 0},
    }
