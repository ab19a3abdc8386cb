"""What one read-out found, and on which rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from demix.metrics.blocks import Sampling

_TRAIN, _VALIDATION = 0.5, 0.2  # shares of the rows; the others score


class ProbeSplit(NamedTuple):
    """Numbers of the rows that fit, that choose the penalty, and that score."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_of(sampling: Sampling) -> ProbeSplit:
    """Split row numbers: half fit, a fifth chooses the penalty, the others score."""
    return ProbeSplit(*sampling.parts([_TRAIN, _TRAIN + _VALIDATION], [sampling.seed, 3]))


class Estimate(NamedTuple):
    """A held-out score with its 95 % interval: a bootstrap over the rows that score."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ReadOut:
    """How well one factor is read out of features by a linear map.

    ``scores`` are of numbers ``r`` (Pearson's) and ``r2``; of two categories ``auc``,
    ``balanced_accuracy`` and ``accuracy``; of more the latter two. The first is the one that is
    tested: ``null`` ``(B,)`` is this score with the factor shuffled over the held-out rows, B
    times. ``penalty`` predicts the validation rows best.
    """

    kind: str
    scores: Mapping[str, Estimate]
    null: np.ndarray
    penalty: float
    split: ProbeSplit

    @property
    def measure(self) -> str:
        """Name of the score that is tested."""
        return next(iter(self.scores))

    @property
    def tested(self) -> Estimate:
        """The score that is tested."""
        return self.scores[self.measure]

    @property
    def chance(self) -> Estimate:
        """Mean of the null, and the ends of its central 95 %."""
        low, high = np.quantile(self.null, [0.025, 0.975])
        return Estimate(float(self.null.mean()), float(low), float(high))

    @property
    def p(self) -> float:
        """Share of orders of the held-out rows that score as well, their own order included.

        Included, so that p is never 0 and its test exact (Phipson & Smyth 2010).
        """
        # The same sum in another order may differ in its last digit.
        as_good = self.null >= self.tested.value - 1e-9
        return float((1 + as_good.sum()) / (1 + len(as_good)))
