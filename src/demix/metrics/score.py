"""A score that knows what it means."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

Interval = tuple[float, float]


class Meaning(NamedTuple):
    """What the best value of a score certifies and leaves open, and what its parts belong to.

    ``needs`` names what must hold for a score to be trusted, see :mod:`demix.metrics.regimes`.
    """

    certifies: str
    leaves_open: str
    per: Literal["factor", "latent"] = "factor"
    best: Literal[0, 1] = 1
    needs: tuple[str, ...] = ("rows",)


APART = ("rows", "factors apart")
PICKED = (*APART, "few latents")
ANY_MIXING = "which latent is which factor, and any mixing of them"


class Score(float):
    """A number with what it certifies; use it like any float.

    Attributes
    ----------
    baseline : float
        The median of the same score for latents whose rows were shuffled, or shifted against the
        factors in blocks: what chance gives. It keeps everything about the latents but their tie
        to the factors, so it is the null of independence. An untrained network would be another
        random representation, but no null: even a random linear map of the factors has an affine
        :math:`R^2` of 1.
    low, high : float
        Ends of a 95 % interval, each the farther of two. One is that of the bootstrap: samples that
        score are drawn anew, fits and bins stay. The other is how much the score varies by chance,
        times what it leaves unexplained. Like ``baseline`` they are computed on first use.
    per_factor : ndarray (n,) or None
        The score of each factor, where the score is a mean over factors.
    per_latent : ndarray (m,) or None
        The score of each latent, where the score is a mean over latents.
    certifies, leaves_open : str
        What the best value says of the factors, and what it leaves undecided.
    best : 0 or 1
        The best value.
    trusted : str
        When the score can be trusted.
    doubts : str
        What of that does not hold here; empty if all of it does.
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

    def __new__(cls, value: float, *meaning: Any, **computed: Any) -> Score:
        """Make the number; copies and pickles take the rest from :meth:`__getstate__`."""
        return super().__new__(cls, value)

    def __init__(
        self,
        value: float,
        meaning: Meaning,
        parts: np.ndarray,
        regime: tuple[str, str],
        *,
        baseline: Callable[[], float],
        interval: Callable[[], Interval],
        assignment: np.ndarray | None = None,
    ) -> None:
        self.certifies, self.leaves_open = meaning.certifies, meaning.leaves_open
        self.best, (self.trusted, self.doubts) = meaning.best, regime
        self.per_factor = parts if meaning.per == "factor" else None
        self.per_latent = parts if meaning.per == "latent" else None
        self.assignment = assignment
        self._compute_baseline, self._compute_interval = baseline, interval

    @cached_property
    def baseline(self) -> float:
        """What chance gives."""
        return self._compute_baseline()

    @cached_property
    def _interval(self) -> Interval:
        return self._compute_interval()

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._interval[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return the meaning with everything computed, for copies and pickles."""
        state = {**self.__dict__, "baseline": self.baseline, "_interval": self._interval}
        return {key: state[key] for key in state if not key.startswith("_compute_")}
