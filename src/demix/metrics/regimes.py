"""When scores can be trusted: how many rows, how many latents, which factors.

A score of held-out rows is a number under all circumstances, but means what it certifies only in
some: see "Who guards the guardians?" (arXiv 2602.24278).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from demix.metrics.blocks import Sampling
from demix.metrics.score import Score

_ROWS = 10  # independent rows that fit, for each latent
_LATENTS = 2  # for each factor
_ALIKE = 0.5  # correlation of two factors


class _Need(NamedTuple):
    words: str
    missing: Callable[[Sampling], str]  # what is there instead, empty if nothing is missing


def _rows(sampling: Sampling) -> str:
    rows, width = sampling.effective / 2, sampling.width
    return f"{rows:.0f} for {width} latents" if rows < _ROWS * width else ""


def _few_latents(sampling: Sampling) -> str:
    width, number = sampling.width, sampling.factors.shape[1]
    return f"{width} latents for {number} factors" if width > _LATENTS * number else ""


def _enough_latents(sampling: Sampling) -> str:
    width, number = sampling.width, sampling.factors.shape[1]
    return f"{width} latents for {number} factors" if width < number else ""


def _factors_apart(sampling: Sampling) -> str:
    centred = sampling.factors - sampling.factors.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(size > 0, size, 1.0)
    largest = float(np.abs(np.triu(unit.T @ unit, 1)).max())
    return f"two correlate by {largest:.2f}" if largest > _ALIKE else ""


NEEDS = {
    "rows": _Need(f"{_ROWS} independent rows that fit for each latent", _rows),
    "few latents": _Need(f"at most {_LATENTS} latents for each factor", _few_latents),
    "enough latents": _Need("a latent for each factor", _enough_latents),
    "factors apart": _Need(f"factors that correlate by at most {_ALIKE}", _factors_apart),
}
"""What a score may need, by the names that :class:`demix.metrics.score.Meaning` lists."""


def regime(needs: tuple[str, ...], sampling: Sampling) -> tuple[str, str]:
    """Return when a score can be trusted, and what of that does not hold."""
    words = [NEEDS[need].words for need in needs]
    missing = [
        f"{NEEDS[need].words}, but here {found}"
        for need in needs
        if (found := NEEDS[need].missing(sampling))
    ]
    return ", ".join(words), "; ".join(missing)


def distrusted(scores: Mapping[str, Score]) -> str | None:
    """Return one sentence about the scores that cannot be trusted, by what they need."""
    by_doubt: dict[str, list[str]] = {}
    for name, score in scores.items():
        if score.doubts:
            by_doubt.setdefault(score.doubts, []).append(name)
    if not by_doubt:
        return None
    each = "; ".join(
        f"{'all' if len(names) == len(scores) else ', '.join(names)} ({doubt})"
        for doubt, names in by_doubt.items()
    )
    return f"Scores that cannot be trusted here: {each}."
