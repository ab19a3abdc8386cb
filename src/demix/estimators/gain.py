"""What a model knows about held-out positives or labels: information, in bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy import optimize, stats
from torch import Tensor

_SHIFTS = 99  # circular shifts of the targets that make the null
_SHARPEST = 10.0  # a model that is more than so many times too careful is of no use anyway
_ERRORS = 10.0  # nats of loss in all, below which no model is made surer than it is


@dataclass(frozen=True)
class Gain:
    """What held-out positives or labels a model predicts, in bits per sample.

    The information is the loss of a guess less the held-out loss, after the model's confidence was
    corrected by one number, `sharpness`, fitted to the validation part. It is zero for a guess and
    never above the `ceiling`.

    Attributes
    ----------
    bits, low, high : float
        The information and its 95 % interval, which is infinite if there are too few held-out
        samples.
    ceiling : float
        The information, in bits, of a model that is always right: the logarithm of the number of
        keys, or the entropy of the labels.
    loss : float
        The held-out loss in nats, as trained.
    sharpness : float
        What the logits are multiplied by; below 1 the model is too sure of itself, at 0 it knows
        nothing.
    p_value : float
        The share of circular shifts of the targets, whole blocks together, that carry as much.
    linear : float
        The information in bits of a linear map that was fitted in the same way; NaN of new data.
    """

    bits: float
    low: float
    high: float
    ceiling: float
    loss: float
    sharpness: float
    p_value: float
    linear: float = math.nan

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low > 0

    def to_dict(self) -> dict[str, float | None]:
        """Return plain data; an infinite end is None, because JSON has no infinity."""
        return {k: v if math.isfinite(v) else None for k, v in asdict(self).items()}

    @staticmethod
    def from_dict(data: Mapping[str, float | None]) -> Gain:
        """Return the gain that :meth:`to_dict` was called on."""
        ends = {"low": -math.inf, "high": math.inf, "linear": math.nan}
        return Gain(**{k: ends[k] if v is None else float(v) for k, v in data.items()})

    def __str__(self) -> str:
        of = f"{self.bits:.3f} of {self.ceiling:.2f} bits"
        beside = "" if math.isnan(self.linear) else f"; a linear map: {self.linear:.3f}"
        return f"{of} (95 % interval {self.low:.3f} to {self.high:.3f}{beside})"


class Prediction(NamedTuple):
    """What a model says of a batch of held-out samples."""

    log_p: Tensor  # (B, K), the log-probability of every key or class
    own: Tensor  # (B,), the key or class of each sample
    blocks: Tensor  # (B,), which lie together; different ones count as independent
    guess: Tensor  # (K,) of float64, the log-probabilities of a guess

    def information(self, sharpness: float) -> Tensor:
        """Return in nats what each sample says of the target of each ``(B, B)``."""
        tempered = self._tempered(sharpness)
        return tempered.log_softmax(dim=1)[:, self.own] - self.guess[self.own]

    def loss(self, sharpness: float = 1.0) -> float:
        """Return the mean loss in nats, for logits times ``sharpness``."""
        return -float(self.own_log_p(sharpness).mean())

    def own_log_p(self, sharpness: float) -> Tensor:
        """Return the log-probability ``(B,)`` of each sample's own target."""
        tempered = self._tempered(sharpness)
        return tempered.gather(1, self.own[:, None])[:, 0] - tempered.logsumexp(dim=1)

    def _tempered(self, sharpness: float) -> Tensor:
        return sharpness * self.log_p.double() + (1 - sharpness) * self.guess

    def ceiling(self) -> float:
        """Return the entropy of the guess in nats."""
        return -float((self.guess.exp() * self.guess).sum())


def mean_loss(predictions: Sequence[Prediction], sharpness: float = 1.0) -> float:
    """Return the mean loss over all samples in nats."""
    sizes = [len(one.own) for one in predictions]
    return float(np.average([one.loss(sharpness) for one in predictions], weights=sizes))


def fitted_sharpness(predictions: Sequence[Prediction]) -> float:
    r"""Return the sharpness :math:`\beta \geq 0` of the smallest loss, which is convex in it.

    The model's :math:`p(k | x)` becomes :math:`\propto p(k | x)^\beta g(k)^{1 - \beta}`, with the
    guess :math:`g`: temperature scaling (Guo et al. 2017) that ends in the guess. It is zero unless
    the samples carry information beyond doubt; a few of them always fit to some sharpness.
    """
    errors = mean_loss(predictions) * sum(len(one.own) for one in predictions)
    most = _SHARPEST if errors > _ERRORS else 1.0
    found = optimize.minimize_scalar(
        lambda beta: mean_loss(predictions, beta), bounds=(0, most), options={"xatol": 1e-4}
    )
    beta = float(found.x)
    mean, reach = block_mean(*own_information(predictions, beta))
    return beta if mean > reach else 0.0


def held_out_gain(predictions: Sequence[Prediction], sharpness: float) -> Gain:
    """Return the information of held-out samples, with its interval and a test.

    The interval is Student's over the means of blocks.

    Examples
    --------
    >>> import torch
    >>> from demix.estimators.gain import Prediction, held_out_gain
    >>> log_p = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log().repeat(50, 1)
    >>> labels, guess = torch.arange(100) % 2, torch.full((2,), 0.5).log()
    >>> gain = held_out_gain([Prediction(log_p, labels, torch.arange(100), guess)], 1.0)
    >>> round(gain.bits, 3), gain.ceiling  # 1 + log2(0.9)
    (0.848, 1.0)
    """
    tables = [one.information(sharpness).cpu() for one in predictions]
    sizes = [len(table) for table in tables]
    shifts = [_shifted(*one) for one in zip(tables, predictions, strict=True)]
    null = np.average(shifts, axis=0, weights=sizes)
    ceiling = float(np.average([one.ceiling() for one in predictions], weights=sizes))
    mean, reach = block_mean(*own_information(predictions, sharpness))
    # A sample may hold more rare labels than the whole, so that the mean passes the entropy.
    ends, most = (mean, mean - reach, mean + reach), ceiling / math.log(2)
    # Rounded, so that a guess knows nothing to the last digit.
    bits, low, high = (min(round(x / math.log(2), 9) + 0.0, most) for x in ends)
    p_value = (1 + int((null >= mean - 1e-12).sum())) / (1 + len(null))
    return Gain(bits, low, high, most, mean_loss(predictions), sharpness, p_value)


def own_information(predictions: Sequence[Prediction], sharpness: float) -> tuple[Tensor, Tensor]:
    """Return in nats what is known of each sample's own target ``(M,)``, and the blocks."""
    own = [(one.own_log_p(sharpness) - one.guess[one.own]).cpu() for one in predictions]
    return torch.cat(own), torch.cat([one.blocks.cpu() for one in predictions])


def block_mean(values: Tensor, blocks: Tensor) -> tuple[float, float]:
    """Return the mean of values ``(M,)`` and how far its 95 % interval reaches to either side."""
    # Samples of one block (a span of time, or rows that pairs connect) may depend on each other.
    _, place = np.unique(blocks.cpu().numpy(), return_inverse=True)
    sizes = np.bincount(place)
    means = np.bincount(place, values.double().cpu().numpy()) / sizes
    mean, reach = float(np.average(means, weights=sizes)), math.inf
    if len(means) > 1:
        reach = float(stats.t.ppf(0.975, len(means) - 1) * stats.sem(means))
    return mean, reach


def _shifted(table: Tensor, prediction: Prediction) -> np.ndarray:
    """Return the mean of targets' information ``(B, B)`` after each of the circular shifts."""
    # A shift is at least as long as the largest block; where that is not possible it is no null.
    rows = torch.arange(len(table))
    least = int(prediction.blocks.unique(return_counts=True)[1].max())
    if len(rows) < 2 * least:
        return np.full(_SHIFTS, np.inf)
    shifts = torch.linspace(least, len(rows) - least, _SHIFTS, dtype=torch.float64).long()
    return np.asarray(table[rows, (rows + shifts[:, None]) % len(rows)].mean(dim=1))
