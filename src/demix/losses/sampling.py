"""An estimate of the log-softmax over very many keys from a few that are drawn."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def draw_distinct(count: int, total: int, generator: torch.Generator) -> Tensor:
    """Return ``count`` different numbers below ``total`` in order; any set is as likely as another.

    The work is that of ``count`` numbers, not of ``total``.
    """
    if 2 * count > total:
        return torch.randperm(total, generator=generator)[:count].sort().values
    drawn = torch.randint(total, (count,), generator=generator).unique()
    while len(drawn) < count:
        # Topped up and never cut, so that no number is treated differently from another.
        more = torch.randint(total, (count - len(drawn),), generator=generator)
        drawn = torch.cat([drawn, more]).unique()
    return drawn


def places(drawn: Tensor, wanted: Tensor) -> Tensor:
    """Return where in ``drawn``, which is in order, each of ``wanted`` is; -1 where it is not."""
    if len(drawn) == 0:
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(drawn, wanted).clamp_max(len(drawn) - 1)
    return torch.where(drawn[place] == wanted, place, -1)


def sampled_log_likelihood(matched: Tensor, others: Tensor, drawn: Tensor, total: int) -> Tensor:
    r"""Estimate :math:`\log p(+(i) | q_i)` under a softmax over ``total`` keys, ``(B,)``.

    With :math:`N` keys in all, :math:`S` drawn and :math:`h_i = 1` if the own key of query
    :math:`i` is among them, else 0, the denominator is estimated as

    .. math:: e^{s_{i+}} + \frac{N - 1}{S - h_i} \sum_{j\ \mathrm{drawn},\ j \neq +(i)} e^{s_{ij}}

    Given :math:`h_i`, each of the :math:`N - 1` other keys is among the :math:`S - h_i` other drawn
    ones with probability :math:`(S - h_i) / (N - 1)`, so the estimate is unbiased. Its logarithm is
    too low by :math:`O(1 / S)` on average (Jensen), and so is the loss. It is exact for ``S = N``.

    Parameters
    ----------
    matched : Tensor (B,)
        :math:`s_{i+}` of each query.
    others : Tensor (B,)
        The logarithm of the sum over drawn keys.
    drawn : Tensor (B,) of int64
        :math:`S - h_i`, how many keys that is the sum of.
    total : int
        Number of keys that were drawn from.
    """
    # In the type of the logits: float32 would cost a float64 loss its digits.
    represented = drawn.to(others).log()
    return matched - torch.logaddexp(matched, others + math.log(total - 1) - represented)
