"""What a read-out found, and its scores: as they are, redrawn, and with the factor shuffled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from demix.metrics.blocks import Sampling
from demix.metrics.readout import area_of
from demix.metrics.statistic import OfWeights, Statistic, Values, over

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
    ``balanced_accuracy`` and ``accuracy``; of more the latter two. The first is tested: ``null``
    ``(B,)`` is this score with the factor shuffled over the held-out rows, B times.
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


class Measured(NamedTuple):
    """Scores of one read-out: their names, and as parts of a statistic; the first is tested.

    ``shuffled`` returns it, ``(B,)``, for the factor in orders ``(B, m)`` of the held-out rows.
    """

    names: tuple[str, ...]
    statistic: Statistic
    shuffled: Callable[[np.ndarray], np.ndarray]


def measured_numbers(predicted: np.ndarray, true: np.ndarray) -> Measured:
    r"""Return Pearson's r and :math:`R^2` of predictions ``(m, k)``.

    Several columns, sine and cosine, are pooled: covariances and squares are added up over them.
    """
    columns = true.shape[1]
    t, p = true - true.mean(axis=0), predicted - predicted.mean(axis=0)
    terms = np.hstack([t, p, np.square(t), np.square(p), t * p, np.square(true - predicted)])

    def scores(weights: np.ndarray) -> Values:
        means = np.split(weights @ terms, range(columns, 6 * columns, columns), axis=1)
        t1, p1, t2, p2, both, missed = means
        spread, reach = (t2 - np.square(t1)).sum(axis=1), (p2 - np.square(p1)).sum(axis=1)
        size = np.sqrt(np.maximum(spread, 0) * np.maximum(reach, 0))
        r = over((both - t1 * p1).sum(axis=1), size)
        r2 = np.where(spread > 0, 1 - over(missed.sum(axis=1), spread), 0.0)
        return _parts([r, r2])

    size = np.sqrt(np.square(t).sum() * np.square(p).sum())

    def shuffled(orders: np.ndarray) -> np.ndarray:
        products = sum(t[:, j][orders] @ p[:, j] for j in range(columns))
        return over(np.asarray(products), np.full(len(orders), size))

    return Measured(("r", "r2"), Statistic(np.arange(len(true)), scores), shuffled)


def measured_binary(logits: np.ndarray, true: np.ndarray, prior: float) -> Measured:
    """Return the area under the ROC curve, balanced and plain accuracy of logits ``(m,)``.

    ``prior`` is the share of ``true`` ``(m,)`` among training rows. The balanced accuracy is of
    the value that is more likely than its prior.
    """
    area = area_of(logits, true)
    balanced, _ = _recall(
        (logits > np.log(prior / (1 - prior))).astype(int), true * 1, np.arange(2)
    )
    right = (logits > 0) == true

    def scores(weights: np.ndarray) -> Values:
        return _parts([area(weights), balanced(weights), weights @ right])

    ranks = rankdata(logits)
    pairs, lowest = true.sum() * (~true).sum(), true.sum() * (true.sum() + 1) / 2

    def shuffled(orders: np.ndarray) -> np.ndarray:
        return np.asarray((true.astype(float)[orders] @ ranks - lowest) / pairs)

    return Measured(
        ("auc", "balanced_accuracy", "accuracy"), Statistic(np.arange(len(true)), scores), shuffled
    )


def measured_categories(
    logits: np.ndarray, true: np.ndarray, priors: np.ndarray, counted: np.ndarray
) -> Measured:
    """Return balanced and plain accuracy of logits ``(m, c)`` for categories ``(m,)``.

    The balanced accuracy is the mean recall of those ``counted``, of which it predicts the one that
    is most likely relative to its share ``priors`` ``(c,)`` among training rows.
    """
    likelier = logits[:, counted] - np.log(priors[counted])
    balanced, shuffled = _recall(counted[likelier.argmax(axis=1)], true, counted)
    right = logits.argmax(axis=1) == true

    def scores(weights: np.ndarray) -> Values:
        return _parts([balanced(weights), weights @ right])

    return Measured(
        ("balanced_accuracy", "accuracy"), Statistic(np.arange(len(true)), scores), shuffled
    )


def _recall(
    given: np.ndarray, true: np.ndarray, counted: np.ndarray
) -> tuple[OfWeights, Callable[[np.ndarray], np.ndarray]]:
    """Return the mean recall as a function of weights, and as one of orders."""
    among = true[:, None] == counted
    right = among & (given == true)[:, None]

    def mean(weights: np.ndarray) -> np.ndarray:
        members = weights @ among
        # A draw may miss a rare category; the mean is over the others.
        return over(over(weights @ right, members).sum(axis=1), (members > 0).sum(axis=1) * 1.0)

    # What a row adds if its own category is predicted for it, in whatever order.
    here = among.any(axis=0)
    worth = np.where(among.any(axis=1), among @ over(here * 1.0, among.sum(axis=0) * here.sum()), 0)

    def shuffled(orders: np.ndarray) -> np.ndarray:
        return np.asarray(((true[orders] == given) * worth[orders]).sum(axis=1))

    return mean, shuffled


def _parts(scores: Sequence[np.ndarray]) -> Values:
    return scores[0], np.stack(scores, axis=1)
