"""Similarities to the rows of a table that lie on several ranks, a share on each.

All queries come to all ranks, for they are fewer than rows; each rank compares them with its own
rows, and numbers per query are what goes around then.
"""

from __future__ import annotations

import torch
from torch import Tensor

from demix._support.process_group.exchange import log_summed, summed
from demix._support.process_group.sharding import Sharding
from demix.losses.similarities import similarity_named
from demix.losses.streaming import pairwise_logsumexp


def log_sums(
    queries: Tensor, keys: Tensor, held: Sharding, *, skip: Tensor | None = None
) -> Tensor:
    """Return ``log sum_j exp <q_i, k_j>`` over the keys of all ranks, ``(B,)``.

    Parameters
    ----------
    queries : Tensor (B, d)
        The queries of all ranks.
    keys : Tensor (K, d)
        The keys of this rank.
    held : Sharding
        The rows that the keys are of.
    skip : Tensor (B,) of int64, optional
        For each query one of this rank's keys that is left out, or -1.
    """
    sums, _ = pairwise_logsumexp(queries, keys, similarity_named("dot"), skip=skip)
    return sums if held.group is None else log_summed(sums, held.group)


def own_similarities(queries: Tensor, own: Tensor, here: Tensor, held: Sharding) -> Tensor:
    """Return ``<q_i, k_+(i)>`` of all queries, ``(B,)``; the rank that holds the key computes it.

    Parameters
    ----------
    queries : Tensor (B, d)
        The queries of all ranks.
    own : Tensor (n, d)
        The keys of those queries whose key is on this rank.
    here : Tensor (n,) of int64
        Which queries these are.
    held : Sharding
        The rows that the keys are of.
    """
    pairs = similarity_named("dot")
    if held.group is None:
        return pairs.paired(queries, own)
    found = pairs.paired(queries[here], own)
    return summed(found.new_zeros(len(queries)).index_put((here,), found), held.group)


def held_here(labels: Tensor, held: Sharding) -> Tensor:
    """Return which of the labels ``(N,)`` are of rows on this rank, as int64 ``(n,)``."""
    own = held.own
    return torch.nonzero((labels >= own.start) & (labels < own.stop))[:, 0]
