"""Scores beside one least-squares fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.sizes import Sizes
from benchmarks.timing import Say, interleaved, medians
from demix.metrics.registry import ENTRIES


def measure_scores(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time every score, with its chance level and interval, on latents that are a noisy rotation.

    Returns
    -------
    dict
        ``entries`` with the seconds of each score and how many plain least-squares fits of all
        samples (`numpy.linalg.lstsq`) it costs.
    """
    random = np.random.default_rng(0)
    factors = random.normal(size=(sizes.scored, sizes.dim))
    rotation = np.linalg.qr(random.normal(size=(sizes.dim, sizes.dim)))[0]
    latents = factors @ rotation + 0.1 * random.normal(size=factors.shape)
    # The same factors as categories, for the scores of those.
    kinds = np.clip(np.round(2 * factors), -4, 4)
    calls: dict[str, Callable[[], object]] = {
        ", ".join(entry.names.values()): partial(
            entry.call, latents, kinds if entry.of == "categories" else factors
        )
        for entry in ENTRIES
    }
    calls["lstsq"] = partial(np.linalg.lstsq, latents, factors, rcond=None)
    seconds = medians(interleaved(calls, sizes.rounds, say))
    fit = seconds.pop("lstsq")
    return {
        "samples": sizes.scored,
        "dim": sizes.dim,
        "entries": [
            {"score": name, "seconds": spent, "fits": spent / fit}
            for name, spent in seconds.items()
        ],
    }
