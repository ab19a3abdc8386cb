"""What a model knows about held-out positives or labels, beside what chance would give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats
from torch import Tensor

from demix.errors import DemixError


@dataclass(frozen=True)
class Gain:
    """The held-out gain over permuted positives or labels, in bits per sample.

    Attributes
    ----------
    bits, low, high : float
        The gain and its 95 % interval.
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
        """Whether the whole interval is."""
        return self.low > 0

    def __str__(self) -> str:
        return f"{self.bits:.3f} bits (95 % interval {self.low:.3f} to {self.high:.3f})"


def held_out_gain(own: Tensor, permuted: Tensor, groups: Tensor) -> Gain:
    """Compare the log-likelihoods of true and of permuted positives or labels.

    Samples of one group (a stretch of time, rows that hang together) may depend on each other, so
    the interval is Student's over the means of groups.

    Parameters
    ----------
    own, permuted : Tensor (M,)
        Log-likelihoods in nats of held-out samples.
    groups : Tensor (M,) of int64
        The group of each sample; at least 2.

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
    difference = ((own - permuted) / math.log(2)).double().numpy()
    members, place = np.unique(groups.numpy(), return_inverse=True)
    if len(members) < 2:
        raise DemixError("An interval needs held-out samples of at least 2 groups, but got 1.")
    means = np.bincount(place, difference) / np.bincount(place)
    error = float(stats.sem(means))
    reach = float(stats.t.ppf(0.975, len(means) - 1)) * error
    bits = float(means.mean())
    return Gain(bits, bits - reach, bits + reach, -float(own.mean()), -float(permuted.mean()))
