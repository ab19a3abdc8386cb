"""Fixtures of the report tests: one small run, as plain arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demix.metrics.regression import affine_r2, mean_correlation

# tests/browser.py serves several folders of tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture(scope="session")
def run() -> dict[str, Any]:
    """Arguments of `recovery_page` for three factors recovered out of order, one with a sign."""
    factors, noise = np.random.default_rng(0).uniform(-1, 1, size=(2, 200, 3))
    latents = np.empty_like(factors)
    latents[:, [2, 0, 1]] = factors * [1, -1, 1] + 0.05 * noise
    return {
        "title": "Three factors",
        "summary": "A short summary.",
        "factors": factors,
        "latents": latents,
        "scores": {
            "affine_r2": affine_r2(latents, factors),
            "mean_correlation": mean_correlation(latents, factors),
        },
        "history": [
            {"step": 0, "seconds": 0.0, "loss": 6.0, "optimum": 4.5, "score": 40.0},
            {"step": 100, "seconds": 0.5, "loss": 5.0, "optimum": 4.5, "score": None},
            {"step": 200, "seconds": 1.0, "loss": 4.6, "optimum": 4.5, "score": 99.0},
        ],
        "provenance": {"seed": 0},
    }
