"""Alignment and uniformity: the two losses that InfoNCE becomes with many negatives."""

from __future__ import annotations

import math

from torch import Tensor
from torch import distributed as dist

from demix._support.process_group.split import lay_out
from demix.losses.contrast import check_rows, tempered
from demix.losses.ring import spread_logsumexp
from demix.losses.similarities import Kind, similarity_named


def alignment(
    queries: Tensor,
    keys: Tensor,
    *,
    similarity: Kind = "dot",
    temperature: float | Tensor = 1.0,
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    r"""Return :math:`-E[s(h(z~), h(z))] / \tau` over positive pairs (Prop. A, Prop. 3).

    Parameters
    ----------
    queries, keys : Tensor (B, d)
        Representations of positive pairs, row by row.
    similarity : "dot" or float
        As in :func:`demix.contrast`.
    temperature : float or Tensor
        ``tau``.
    group : ProcessGroup, optional
        As in :func:`demix.contrast`.

    Examples
    --------
    >>> import torch
    >>> from demix.losses.asymptotics import alignment
    >>> alignment(torch.eye(2), torch.eye(2))
    tensor(-1.)
    """
    check_rows(queries, keys, group)
    pairs = similarity_named(similarity)
    (own,) = lay_out(group, queries)
    return -own.mean(pairs.paired(*tempered(queries, keys, pairs, temperature)))


def uniformity(
    queries: Tensor,
    keys: Tensor,
    *,
    similarity: Kind = "dot",
    temperature: float | Tensor = 1.0,
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    r"""Return :math:`E_z \log E_{z~} e^{s(h(z~), h(z)) / \tau}`, ``z~`` independent of ``z``.

    The sum of :func:`alignment` and this is the limit of ``contrast - log M`` (Eqs. 12, 56).

    Parameters
    ----------
    queries, keys : Tensor (B, d), (K, d)
        Representations of two independent sets of samples.
    similarity : "dot" or float
        As in :func:`demix.contrast`.
    temperature : float or Tensor
        ``tau``.
    group : ProcessGroup, optional
        As in :func:`demix.contrast`.

    Examples
    --------
    >>> import torch
    >>> from demix.losses.asymptotics import uniformity
    >>> uniformity(torch.zeros(2, 3), torch.zeros(5, 3)).abs() < 1e-6
    tensor(True)
    """
    check_rows(queries, keys, group)
    pairs = similarity_named(similarity)
    own, held = lay_out(group, queries, keys)
    rows, _ = spread_logsumexp(*tempered(queries, keys, pairs, temperature), pairs, held)
    return own.mean(rows) - math.log(held.total)
