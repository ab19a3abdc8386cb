"""Exact log-sum-exp over all pairs in the memory of one tile, with keys on one or several ranks."""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from demix._support.kernel.build import library
from demix._support.process_group.sharding import Sharding
from demix.losses import compiled, tiles
from demix.losses.similarities import PairBlock, PairSimilarity


def pairwise_logsumexp(
    q: Tensor, k: Tensor, kind: PairSimilarity, *, skip: Tensor | None = None, columns: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the log-sum-exp of the similarity matrix along its rows and along its columns.

    These are ``log sum_j exp s(q_i, k_j)`` ``(B,)`` and, if ``columns`` are asked for,
    ``log sum_i exp s(q_i, k_j)`` ``(K,)``, for queries ``(B, d)`` and keys ``(K, d)`` of one type.
    ``skip`` ``(B,)`` names for each query one key that is left out of both sums, or -1.
    """
    return _PairwiseLogSumExp.apply(q, k, kind, skip, columns)


def sharded_logsumexp(
    q: Tensor, k: Tensor, similarity: PairSimilarity, keys: Sharding, *, columns: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the same of own queries over all ranks' keys, and of own keys over all queries."""
    rows, sums = pairwise_logsumexp(q, keys.gathered(k), similarity, columns=columns)
    return rows, None if sums is None else keys.of_own(sums).logsumexp(0)


def kernel_name() -> str:
    """Return which code sums over pairs on this machine: ``"compiled"`` or ``"tiles"``."""
    return "tiles" if library() is None else "compiled"


class _PairwiseLogSumExp(torch.autograd.Function):
    # Without autocast: forward and backward must see the same, unrounded similarities.

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, *given: Any) -> tuple[Tensor, Tensor | None]:
        ctx.similarity, skip, columns = given
        rows = q.new_full((len(q),), -torch.inf)  # where there are no pairs
        sums = k.new_full((len(k),), -torch.inf) if columns else None
        if len(q) and len(k):
            block = PairBlock(q, k, ctx.similarity, skip)
            with torch.autocast(q.device.type, enabled=False):
                rows, sums = _engine(block).logsumexp(block, columns)
            if len(k) == 1 and skip is not None:
                rows = torch.where(skip == 0, -torch.inf, rows)
        ctx.save_for_backward(q, k, skip, rows, sums)
        return rows, sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, skip, rows, sums = ctx.saved_tensors
        if len(q) == 0 or len(k) == 0:
            return torch.zeros_like(q), torch.zeros_like(k), None, None, None
        if len(k) == 1 and skip is not None:
            rows = tiles.finite(rows)
        block, columns = PairBlock(q, k, ctx.similarity, skip), None
        if sums is not None:
            columns = sums, grads[1]
        with torch.autocast(q.device.type, enabled=False):
            to_q, to_k = _engine(block).gradient(block, (rows, grads[0]), columns)
        return to_q, to_k, None, None, None


def _engine(block: PairBlock) -> ModuleType:
    return compiled if compiled.serves(block) else tiles
