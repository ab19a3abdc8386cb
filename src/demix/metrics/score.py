"""A score that knows what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Interval = tuple[float, float]


class Score(float):
    """A number with what it certifies; use it like any float.

    Attributes
    ----------
    baseline : float
        The same score for latents whose rows were shuffled: what chance gives. Shuffling keeps
        everything about the latents but their tie to the factors, so it is exactly the null of
        independence. An untrained network would be another random representation, but no null:
        even a random linear map of the factors has an affine :math:`R^2` of 1.
    low, high : float
        Ends of a 95 % bootstrap interval: samples that score are drawn anew, fits and bins stay.
        Like ``baseline`` they are computed when they are first asked for.
    per_factor : ndarray (n,) or None
        The score of each factor, where the score is a mean over factors.
    per_latent : ndarray (m,) or None
        The score of each latent, where the score is a mean over latents.
    certifies, leaves_open : str
        What the best value says of the factors, and what it leaves undecided.
    assignment : ndarray (n,) of int or None
        For matching scores, the latent (column) of each factor, -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import affine_r2
    >>> z = np.random.default_rng(0).normal(size=(200, 3))
    >>> score = affine_r2(2 * z + 1, z)
    >>> round(score, 6), score.baseline < 0.2, score.certifies
    (1.0, True, 'the factors up to an affine map')
    >>> noisy = affine_r2(z + np.random.default_rng(1).normal(size=(200, 3)), z)
    >>> 0 < noisy.low < noisy < noisy.high < 1
    True
    """

    per_factor: np.ndarray | None
    per_latent: np.ndarray | None
    certifies: str
    leaves_open: str
    assignment: np.ndarray | None
    _baseline: float | Callable[[], float]
    _interval: Interval | Callable[[], Interval]

    def __new__(
        cls,
        value: float,
        *,
        baseline: float | Callable[[], float],
        interval: Interval | Callable[[], Interval],
        certifies: str,
        leaves_open: str,
        per_factor: np.ndarray | None = None,
        per_latent: np.ndarray | None = None,
        assignment: np.ndarray | None = None,
    ) -> Score:
        """Attach the meaning to the number."""
        score = super().__new__(cls, value)
        score._baseline, score._interval = baseline, interval
        score.per_factor = per_factor
        score.per_latent = per_latent
        score.certifies = certifies
        score.leaves_open = leaves_open
        score.assignment = assignment
        return score

    @property
    def baseline(self) -> float:
        """What chance gives."""
        if callable(self._baseline):
            self._baseline = self._baseline()
        return self._baseline

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._ends()[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._ends()[1]

    def _ends(self) -> Interval:
        if callable(self._interval):
            self._interval = self._interval()
        return self._interval

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        """Let copies and pickles keep the meaning."""
        names = ("certifies", "leaves_open", "per_factor", "per_latent", "assignment")
        kept = {name: getattr(self, name) for name in names}
        return (float(self),), {"baseline": self.baseline, "interval": self._ends(), **kept}

    def __getstate__(self) -> None:
        """Leave nothing to the copy but what makes it."""
        return None
