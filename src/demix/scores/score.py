"""A score that knows what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Score(float):
    """A number with what it certifies; use it like any float.

    Attributes
    ----------
    baseline : float
        The same score for latents whose rows were shuffled: what chance gives.
    per_factor : ndarray (n,)
        The score of each factor.
    certifies, leaves_open : str
        The equivalence class up to which a value of 1 identifies the factors, and what it leaves
        undecided.
    assignment : ndarray (n,) of int or None
        For matching scores, the latent (column) of each factor, -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import affine_r2
    >>> z = np.random.default_rng(0).normal(size=(200, 3))
    >>> score = affine_r2(2 * z + 1, z)
    >>> round(score, 6), score.baseline < 0.2, score.certifies
    (1.0, True, 'an affine map')
    """

    baseline: float
    per_factor: np.ndarray
    certifies: str
    leaves_open: str
    assignment: np.ndarray | None

    def __new__(
        cls,
        value: float,
        *,
        baseline: float,
        per_factor: np.ndarray,
        certifies: str,
        leaves_open: str,
        assignment: np.ndarray | None = None,
    ) -> Score:
        """Attach the meaning to the number."""
        score = super().__new__(cls, value)
        score.baseline = baseline
        score.per_factor = per_factor
        score.certifies = certifies
        score.leaves_open = leaves_open
        score.assignment = assignment
        return score

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        """Let copies and pickles keep the meaning."""
        return (float(self),), dict(vars(self))


def halves(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the row numbers at random into those that fit and those that score."""
    order = np.random.default_rng(seed).permutation(samples)
    return order[: samples // 2], order[samples // 2 :]


def shuffled(
    per_factor: Callable[[np.ndarray, np.ndarray], np.ndarray],
    latents: np.ndarray,
    factors: np.ndarray,
    seed: int,
) -> float:
    """Return the mean of ``per_factor`` for latents whose rows are shuffled."""
    order = np.random.default_rng([seed, 1]).permutation(len(latents))
    return float(np.mean(per_factor(latents[order], factors)))
