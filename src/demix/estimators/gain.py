"""What a model knows about held-out positives or labels, compared with chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats
from torch import Tensor


@dataclass(frozen=True)
class Gain:
    """The held-out gain over permuted positives or labels, in bits per sample.

    Attributes
    ----------
    bits, low, high : float
        The gain and its 95 % interval, which is infinite if there are too few held-out samples.
    loss, null : float
        The held-out loss in nats, and that of the same model with permuted positives or labels.
    """

    bits: float
    low: float
    high: float
    loss: float
    null: float

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
        ends = {"low": -math.inf, "high": math.inf}
        return Gain(**{k: ends[k] if v is None else float(v) for k, v in data.items()})

    def __str__(self) -> str:
        return f"{self.bits:.3f} bits (95 % interval {self.low:.3f} to {self.high:.3f})"


def held_out_gain(own: Tensor, permuted: Tensor, blocks: Tensor) -> Gain:
    """Compare log-likelihoods ``(M,)`` in nats of true and of permuted positives or labels.

    Samples of one block (a span of time, or rows that pairs connect) may depend on each other, so
    the interval is Student's over the means of blocks.

    Examples
    --------
    >>> import torch
    >>> from demix.estimators.gain import held_out_gain
    >>> gain = held_out_gain(
    ...     torch.tensor([-1.0, -1.1]), torch.tensor([-3.0, -3.3]), torch.arange(2)
    ... )
    >>> round(gain.bits, 2)
    3.03
    """
    difference = ((own - permuted) / math.log(2)).double().cpu().numpy()
    _, place = np.unique(blocks.cpu().numpy(), return_inverse=True)
    sizes = np.bincount(place)
    means = np.bincount(place, difference) / sizes
    bits = float(np.average(means, weights=sizes))
    reach = math.inf
    if len(means) > 1:
        reach = float(stats.t.ppf(0.975, len(means) - 1) * stats.sem(means))
    return Gain(bits, bits - reach, bits + reach, -float(own.mean()), -float(permuted.mean()))
