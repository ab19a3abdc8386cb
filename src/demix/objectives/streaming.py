"""Exact log-sum-exp over all pairs in the memory of one tile."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from demix.objectives import compiled, tiles
from demix.objectives.similarities import PairSimilarity


def pairwise_logsumexp(
    q: Tensor,
    k: Tensor,
    similarity: PairSimilarity,
    *,
    skip: Tensor | None = None,
    columns: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the log-sum-exp of the similarity matrix along its rows and along its columns.

    The ``B x K`` matrix is made tile by tile, forward and again backward, and never held: in
    compiled code where there is a C compiler, else in plain torch, which also serves other devices
    and similarities.

    Parameters
    ----------
    q, k : Tensor (B, d), (K, d)
        Queries and keys, in one floating type.
    similarity : PairSimilarity
        What the matrix holds.
    skip : Tensor (B,) of int64, optional
        For each query one key that is left out of both sums, or -1 for none.
    columns : bool
        Whether the sums along the columns are needed.

    Returns
    -------
    rows, columns : Tensor (B,), Tensor (K,) or None
        ``log sum_j exp s(q_i, k_j)`` and ``log sum_i exp s(q_i, k_j)``.
    """
    rows, column_sums = _PairwiseLogSumExp.apply(q, k, similarity, skip, columns)
    return rows, column_sums


def kernel_name() -> str:
    """Return which code sums over pairs on this machine: ``"compiled"`` or ``"tiles"``.

    Examples
    --------
    >>> from demix.objectives import kernel_name
    >>> kernel_name() in ("compiled", "tiles")
    True
    """
    return "tiles" if compiled.library() is None else "compiled"


def _engine(q: Tensor, k: Tensor, similarity: PairSimilarity) -> ModuleType:
    return compiled if compiled.serves(q, k, similarity) else tiles


class _PairwiseLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        similarity: PairSimilarity,
        skip: Tensor | None,
        columns: bool,
    ) -> tuple[Tensor, Tensor | None]:
        # Without autocast: forward and backward must see the same, unrounded similarities.
        with torch.autocast(q.device.type, enabled=False):
            rows, sums = _engine(q, k, similarity).logsumexp(q, k, similarity, skip, columns)
        ctx.similarity = similarity
        ctx.save_for_backward(q, k, skip, rows, sums)
        return rows, sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor, Tensor, None, None, None]:
        q, k, skip, rows, sums = ctx.saved_tensors
        engine = _engine(q, k, ctx.similarity)
        with torch.autocast(q.device.type, enabled=False):
            to_q, to_k = engine.gradient(q, k, ctx.similarity, skip, rows, grads[0], sums, grads[1])
        return to_q, to_k, None, None, None
