"""Exact log-sum-exp over all pairs in the memory of one tile, with keys on one or several ranks.

Every rank keeps its own queries. Keys come *gathered*, all at once, or in a *ring*, the keys of one
rank after those of another, while the next ones are in transit; the numbers are the same.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.process_group.sharding import Sharding, log_summed
from demix.losses import kernel as compiled
from demix.losses import tiles
from demix.losses.similarities import PairBlock, PairSimilarity

Exchange = Literal["ring", "gather"]
# With fewer keys on a rank, a hop takes longer than what is computed meanwhile (docs/scale.md).
_FEW = 1024
_KEYS, _RESULTS = 0, 1


def pairwise_logsumexp(
    q: Tensor,
    k: Tensor,
    similarity: PairSimilarity,
    *,
    skip: Tensor | None = None,
    columns: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the log-sum-exp of the similarity matrix along its rows and along its columns.

    These are ``log sum_j exp s(q_i, k_j)`` ``(B,)`` and, if ``columns`` are asked for,
    ``log sum_i exp s(q_i, k_j)`` ``(K,)``, for queries ``(B, d)`` and keys ``(K, d)`` of one type.
    ``skip`` ``(B,)`` names for each query one key that is left out of both sums, or -1.
    """
    sums: tuple[Tensor, Tensor | None] = _PairwiseLogSumExp.apply(q, k, similarity, skip, columns)
    return sums


def sharded_logsumexp(
    q: Tensor,
    k: Tensor,
    similarity: PairSimilarity,
    keys: Sharding,
    *,
    columns: bool = False,
    exchange: Exchange | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return the same of own queries over all ranks' keys, and of own keys over all queries."""
    # Keys come in a ring unless there are few on each rank, or as ``exchange`` says.
    if keys.group is None:
        return pairwise_logsumexp(q, k, similarity, columns=columns)
    if exchange is None:
        exchange = "ring" if max(keys.sizes) > _FEW else "gather"
    if exchange == "ring":
        rows, sums = _RingLogSumExp.apply(q, k, similarity, keys, columns)
        return rows, sums
    rows, sums = pairwise_logsumexp(q, keys.gathered(k), similarity, columns=columns)
    return rows, None if sums is None else log_summed(sums, keys.group)[keys.own]


def kernel_name() -> str:
    """Return which code sums over pairs on this machine: ``"compiled"`` or ``"tiles"``."""
    return "tiles" if compiled.library() is None else "compiled"


class _PairwiseLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, *given: Any) -> tuple[Tensor, Tensor | None]:
        ctx.similarity, skip, columns = given
        rows, sums = _logsumexp(PairBlock(q, k, ctx.similarity, skip), columns)
        ctx.save_for_backward(q, k, skip, rows, sums)
        return rows, sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, skip, rows, sums = ctx.saved_tensors
        columns = None if sums is None else (sums, grads[1])
        block = PairBlock(q, k, ctx.similarity, skip)
        return *_gradient(block, (rows, grads[0]), columns), None, None, None


class _RingLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, *given: Any) -> tuple[Tensor, Tensor | None]:
        ctx.similarity, keys, columns = given
        rows = q.new_full((len(q),), -torch.inf)
        results = _Results(keys, torch.logaddexp)
        for hop, block in _blocks(k, keys):
            part, sums = _logsumexp(PairBlock(q, block, ctx.similarity), columns)
            rows = torch.logaddexp(rows, part)
            if sums is not None:
                results.send(hop, sums)
        own, ctx.keys = results.total() if columns else None, keys
        ctx.save_for_backward(q, k, rows, own)
        return rows, own

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, rows, own = ctx.saved_tensors
        keys, width = ctx.keys, k.shape[1]
        # Keys travel together with their sums and the gradients of these.
        with_sums = [] if own is None else [own[:, None], grads[1][:, None]]
        to_q, results = torch.zeros_like(q), _Results(keys, torch.add)
        for hop, block in _blocks(torch.cat([k, *with_sums], dim=1), keys):
            columns = None if own is None else (block[:, width], block[:, width + 1])
            pairs = PairBlock(q, block[:, :width], ctx.similarity)
            pulled, to_block = _gradient(pairs, (rows, grads[0]), columns)
            to_q += pulled
            results.send(hop, to_block)
        return to_q, results.total(), None, None, None


def _logsumexp(block: PairBlock, columns: bool) -> tuple[Tensor, Tensor | None]:
    """Return the sums over a block of pairs; ``-inf`` where there are none."""
    q, k, _, skip = block
    if len(q) == 0 or len(k) == 0:
        nothing = k.new_full((len(k),), -torch.inf) if columns else None
        return q.new_full((len(q),), -torch.inf), nothing
    # Without autocast: forward and backward must see the same, unrounded similarities.
    with torch.autocast(q.device.type, enabled=False):
        rows, sums = _engine(block).logsumexp(block, columns)
    if len(k) == 1 and skip is not None:
        rows = torch.where(skip == 0, -torch.inf, rows)
    return rows, sums


def _gradient(
    block: PairBlock, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of a block, given sums over at least this block with their gradients."""
    q, k, _, skip = block
    if len(q) == 0 or len(k) == 0:
        return torch.zeros_like(q), torch.zeros_like(k)
    if len(k) == 1 and skip is not None:
        rows = tiles.finite(rows[0]), rows[1]
    with torch.autocast(q.device.type, enabled=False):
        to_q, to_k = _engine(block).gradient(block, rows, columns)
    return to_q, to_k


def _engine(block: PairBlock) -> ModuleType:
    return compiled if compiled.serves(block) else tiles


def _blocks(own: Tensor, keys: Sharding) -> Iterator[tuple[int, Tensor]]:
    """Yield ``(hop, block)``, own rows first; the next block is received meanwhile."""
    ranks, block = len(keys.sizes), own.contiguous()
    for hop in range(ranks - 1):
        coming = block.new_empty(keys.sizes[(keys.rank - hop - 1) % ranks], *block.shape[1:])
        received = _swapped(block, keys.rank + 1, coming, keys.rank - 1, keys, _KEYS)
        yield hop, block
        block = received()
    yield ranks - 1, block


class _Results:
    """Collects what all ranks found about the keys of this one."""

    def __init__(self, keys: Sharding, combine: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.keys, self.combine = keys, combine
        self.own = torch.empty(0)
        self.pending: Callable[[], Tensor] | None = None

    def send(self, hop: int, found: Tensor) -> None:
        """Send what was found at a hop to the owner of the keys, and receive what others found."""
        if hop == 0:
            self.own = found
            return
        coming, rank = torch.empty_like(self.total()), self.keys.rank
        found = found.contiguous()
        self.pending = _swapped(found, rank - hop, coming, rank + hop, self.keys, _RESULTS)

    def total(self) -> Tensor:
        """Return what all ranks found about own keys."""
        if self.pending is not None:
            self.own, self.pending = self.combine(self.own, self.pending()), None
        return self.own


def _swapped(
    leaving: Tensor, to: int, coming: Tensor, source: int, keys: Sharding, tag: int
) -> Callable[[], Tensor]:
    """Send an array to a rank and fill another one meanwhile; the result waits for both."""
    messages = [
        dist.P2POp(call, array, group=keys.group, tag=tag, group_peer=peer % len(keys.sizes))
        for call, array, peer in ((dist.isend, leaving, to), (dist.irecv, coming, source))
        if len(array)  # empty ones need no message
    ]
    works = dist.batch_isend_irecv(messages) if messages else []

    def received() -> Tensor:
        for work in works:
            work.wait()
        del messages[:]  # which held the leaving array until now
        return coming

    return received
