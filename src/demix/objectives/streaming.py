"""Exact log-sum-exp over all pairs in the memory of one tile."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from demix.objectives.similarities import PairSimilarity

# Elements of a tile, 2 MiB in float32: small beside any encoder, enough to keep all cores busy.
_TILE = 2**19


def pairwise_logsumexp(
    q: Tensor,
    k: Tensor,
    similarity: PairSimilarity,
    *,
    skip: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the log-sum-exp of the similarity matrix along its rows and along its columns.

    The ``B x K`` matrix is made tile by tile, forward and again backward, and never held.

    Parameters
    ----------
    q, k : Tensor (B, d), (K, d)
        Queries and keys, in one floating type.
    similarity : PairSimilarity
        What the matrix holds.
    skip : Tensor (B,) of int64, optional
        For each query one key that is left out of both sums.

    Returns
    -------
    rows, columns : Tensor (B,), (K,)
        ``log sum_j exp s(q_i, k_j)`` and ``log sum_i exp s(q_i, k_j)``.
    """
    rows, columns = _PairwiseLogSumExp.apply(q, k, similarity, skip)
    return rows, columns


def _tiles(q: Tensor, k: Tensor, similarity: PairSimilarity, skip: Tensor | None) -> Any:
    """Yield ``(slice of rows, tile)``, skipped pairs at ``-inf``."""
    step = max(1, _TILE // max(1, len(k)))
    for start in range(0, len(q), step):
        part = slice(start, min(start + step, len(q)))
        tile = similarity.tile(q[part], k)
        if skip is not None:
            tile.scatter_(1, skip[part, None], -torch.inf)
        yield part, tile


def _exp(tile: Tensor) -> Tensor:
    """Exponentiate in place, far from the denormal numbers that slow a processor down tenfold.

    What is cut off lies below ``e^-60`` (float32) or ``e^-490`` (float64) of the largest term.
    """
    return tile.clamp_min_(0.69 * math.log(torch.finfo(tile.dtype).tiny)).exp_()


def _full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Switch autocast off: forward and backward must see the same, unrounded similarities."""
    return torch.autocast(x.device.type, enabled=False)


class _PairwiseLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, similarity: PairSimilarity, skip: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        rows = q.new_empty(len(q))
        highest = k.new_full((len(k),), -torch.inf)
        total = k.new_zeros(len(k))
        with _full_precision(q):
            for part, tile in _tiles(q, k, similarity, skip):
                rows[part] = torch.logsumexp(tile, dim=1)
                # A running maximum keeps the column sums in range; -inf stands for "nothing yet".
                higher = torch.maximum(highest, tile.amax(dim=0))
                shift = torch.where(higher.isfinite(), higher, 0)
                total *= torch.exp(highest - shift)
                total += _exp(tile.sub_(shift)).sum(dim=0)
                highest = higher
        columns = total.log() + torch.where(highest.isfinite(), highest, 0)
        ctx.similarity = similarity
        ctx.save_for_backward(q, k, rows, columns, skip)
        return rows, columns

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        q, k, rows, columns, skip = ctx.saved_tensors
        grad_rows, grad_columns = grads
        one_sided = not bool(grad_columns.any())
        grad_q, grad_k = torch.empty_like(q), torch.zeros_like(k)
        with _full_precision(q):
            for part, tile in _tiles(q, k, ctx.similarity, skip):
                if one_sided:
                    weight = _exp(tile.sub_(rows[part, None])).mul_(grad_rows[part, None])
                else:
                    weight = _exp(tile - rows[part, None]).mul_(grad_rows[part, None])
                    weight += _exp(tile.sub_(columns)).mul_(grad_columns)
                grad_q[part], to_k = ctx.similarity.pull(q[part], k, weight)
                grad_k += to_k
        return grad_q, grad_k, None, None
