"""A score that knows what it means, what chance gives, and when it can be trusted."""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from demix._support.resources import table
from demix.metrics.blocks import Sampling
from demix.metrics.statistic import Statistic
from demix.theory.setting import UP_TO

_MEANINGS = table("metrics/scores.toml")

# How often chance is measured: most scores, for many rows less often; those that take long.
_NULLS, SLOW, SLOWEST = 100, 20, 5
_NULL_ROWS = 2_000_000
# When scores can be trusted: see "Who guards the guardians?" (arXiv 2602.24278).
_ROWS = 10  # independent rows that fit, for each latent
_LATENTS = 2  # for each factor
_ALIKE = 0.5  # correlation of two factors


class Meaning(NamedTuple):
    """What the best value of a score certifies and leaves open, and what its parts belong to."""

    certifies: str
    leaves_open: str
    per: Literal["factor", "latent"] = "factor"
    best: Literal[0, 1] = 1
    needs: Sequence[str] = ("rows",)  # to be trusted

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the meaning of a score of this library."""
        row = _MEANINGS[name]
        words = {key: row[key].format(**UP_TO) for key in ("certifies", "leaves_open")}
        return cls(**{**row, **words})

    def regime(self, sampling: Sampling) -> tuple[str, str]:
        """Return when the score can be trusted, and what of that does not hold."""
        rows, width = sampling.effective / 2, sampling.width
        number, alike = sampling.factors.shape[1], 0.0
        if "factors apart" in self.needs:
            centred = sampling.factors - sampling.factors.mean(axis=0)
            size = np.linalg.norm(centred, axis=0)
            unit = centred / np.where(size > 0, size, 1.0)
            alike = float(np.abs(np.triu(unit.T @ unit, 1)).max())
        both = f"{width} latents for {number} factors"
        missed = {
            "rows": rows < _ROWS * width and f"{rows:.0f} for {width} latents",
            "few latents": width > _LATENTS * number and both,
            "enough latents": width < number and both,
            "factors apart": alike > _ALIKE and f"two correlate by {alike:.2f}",
        }
        least = {"rows": _ROWS, "latents": _LATENTS, "alike": _ALIKE}
        words = {need: _MEANINGS["needs"][need].format(**least) for need in self.needs}
        doubts = [f"{words[need]}, but here {missed[need]}" for need in words if missed[need]]
        return ", ".join(words.values()), "; ".join(doubts)


Chance = Callable[[], tuple[float, float, float]]
"""Returns the chance level and the ends of the interval."""


class Score(float):
    """A number with what it certifies; use it like any float.

    Attributes
    ----------
    baseline : float
        What chance gives: the median of the same score for latents whose rows were shuffled, or
        shifted against the factors in blocks; computed on first use.
    low, high : float
        Ends of a 95 % interval, the farther ones of a bootstrap over the samples that score and of
        how much chance varies, times what the score leaves unexplained.
    per_factor, per_latent : ndarray or None
        The score of each factor or latent, where the score is a mean over them.
    best, certifies, leaves_open : 0 or 1, str, str
        The best value, what it says of the factors, and what it leaves undecided.
    trusted, doubts : str
        When the score can be trusted, and what of that does not hold here; empty if all does.
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
    """

    def __new__(cls, value: float, *rest: Any) -> Self:
        """Make the number; copies and pickles take the rest from :meth:`__getstate__`."""
        return super().__new__(cls, value)

    def __init__(
        self, _: float, parts: np.ndarray, meaning: Meaning, sampling: Sampling, chance: Chance
    ) -> None:
        self.certifies, self.leaves_open = meaning.certifies, meaning.leaves_open
        self.best, (self.trusted, self.doubts) = meaning.best, meaning.regime(sampling)
        self.per_factor = parts if meaning.per == "factor" else None
        self.per_latent = parts if meaning.per == "latent" else None
        self.assignment: np.ndarray | None = None
        self._compute = chance

    @cached_property
    def _chance(self) -> tuple[float, float, float]:
        return self._compute()

    baseline = property(lambda self: self._chance[0], doc="What chance gives.")
    low = property(lambda self: self._chance[1], doc="The lower end of the interval.")
    high = property(lambda self: self._chance[2], doc="The upper end of the interval.")

    def __getstate__(self) -> dict[str, Any]:
        """Return the meaning with everything computed, for copies and pickles."""
        state = {**self.__dict__, "_chance": self._chance}
        return {key: state[key] for key in state if key != "_compute"}


def scored(
    measure: Callable[[np.ndarray], Statistic],
    latents: np.ndarray,
    meaning: Meaning,
    sampling: Sampling,
    *,
    nulls: int = _NULLS,
) -> Score:
    """Return the score of what ``measure`` returns; see :func:`scored_each`."""
    return scored_each(lambda z: [measure(z)], latents, [meaning], sampling, nulls=nulls)[0]


def scored_each(
    measure: Callable[[np.ndarray], Sequence[Statistic]],
    latents: np.ndarray,
    meanings: Sequence[Meaning],
    sampling: Sampling,
    *,
    nulls: int = _NULLS,
) -> list[Score]:
    """Return several scores of one measurement."""
    # Chance is measured on first use, once for all, on the latents in up to ``nulls`` other orders.
    number = int(np.clip(_NULL_ROWS // len(latents), min(nulls, SLOW), nulls))

    @cache
    def null() -> np.ndarray:
        draws = (measure(latents[order]) for order in sampling.orders(number))
        return np.array([[one.unweighted()[0] for one in draw] for draw in draws])

    def score(place: int, statistic: Statistic, meaning: Meaning) -> Score:
        def chance() -> tuple[float, float, float]:
            drawn = null()[:, place]
            return float(np.median(drawn)), *statistic.interval(sampling, meaning.best, drawn)

        value, parts = statistic.unweighted()
        return Score(float(value), parts, meaning, sampling, chance)

    return list(map(score, range(len(meanings)), measure(latents), meanings))
