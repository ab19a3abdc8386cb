"""Synthetic results for the tests of their pages, as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from demix.data.data import as_data
from demix.report.training import training_sections

GAIN = {"bits": 2.0, "low": 1.8, "high": 2.1, "ceiling": 9.0, "loss": 4.85}
GAIN |= {"sharpness": 0.9, "p_value": 0.01, "linear": None}
HISTORY = [
    {
        "step": step,
        "seconds": step / 50,
        "loss": 6.2 - step / 500,
        "validation": held_out,
    }
    for step, held_out in ((0, 6.24), (100, None), (200, 5.5), (300, 4.85), (400, 4.9))
]


def blocks(page, kind) -> list[Any]:
    """Return the blocks of one kind."""
    return [block for section in page.sections for block in section.body if type(block) is kind]


def titles(page) -> list[str]:
    """Return the titles of the sections."""
    return [section.title for section in page.sections]


def curve(*arguments: Any, **options: Any) -> Any:
    """Return the figure about training."""
    return training_sections(*arguments, **options)[0].body[0].figure


def about(rows: int = 400, **changed: Any) -> dict[str, Any]:
    """What a model folder tells of a fit to a time series."""
    return {
        "estimator": "ContrastiveDemixer",
        "gain": GAIN,
        "history": HISTORY,
        "best_step": 300,
        "notes": ["Column 3 is constant."],
        "data": "12ab",
        "parameters": {"random_state": 0},
        "provenance": {"demix": "1.0"},
        "rows": rows,
        "time_order": True,
        **changed,
    }


def fit(rows: int = 400, n: int = 3, images: Any = None, **changed: Any) -> dict[str, Any]:
    """Arguments of `fit_page` for a time series whose factors are known."""
    factors = np.random.default_rng(0).normal(size=(rows, n))
    return {
        "about": about(rows),
        "facts": {"space": "real", "latents": n, "rows": rows},
        "latents": np.roll(factors, 1, axis=1),
        "data": None if images is None else as_data(images),
        "factors": factors,
        **changed,
    }


def blobs(count: int = 300, side: int = 16, channels: int = 3) -> dict[str, Any]:
    """Images of a blob that moves across (latent 0) and down (latent 1)."""
    place = np.random.default_rng(1).uniform(-1, 1, size=(count, 2))
    down, across = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    x, y = 0.7 * place[:, :1, None], 0.7 * place[:, 1:, None]
    blob = np.exp(-((across - x) ** 2 + (down - y) ** 2) / 0.05)
    shades = np.array([1.0, 0.6, 0.2])[:channels, None, None]
    return {"images": blob[:, None] * shades, "latents": place}


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
