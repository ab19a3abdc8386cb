"""Exact log-sum-exp over all pairs in the memory of one tile, with keys on one or several ranks.

Every rank keeps its own queries. Keys come to them in one of two ways, which give the same numbers:
*gathered*, all at once, or in a *ring*, the keys of one rank after those of another, while the next
ones are in transit. Sums along columns and gradients of keys return to the rank of the keys.
"""

from __future__ import annotations

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
    ``skip`` ``(B,)`` names for each query one key that is left out of both sums, or -1. The matrix
    is made tile by tile, forward and again backward, and never held: in compiled code where there
    is a C compiler, else in plain torch, which also serves other devices and similarities.
    """
    sums: tuple[Tensor, Tensor | None] = _PairwiseLogSumExp.apply(q, k, similarity, skip, columns)
    return sums


def sharded_logsumexp(
    q: Tensor,
    k: Tensor,
    similarity: PairSimilarity,
    keys: Sharding,
    *,
    skip: Tensor | None = None,
    columns: bool = False,
    exchange: Exchange | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return the same of own queries over all ranks' keys, and of own keys over all queries.

    ``skip`` counts keys over all ranks. Keys come in a ring unless there are few on each rank, or
    as ``exchange`` says.
    """
    if keys.group is None:
        return pairwise_logsumexp(q, k, similarity, skip=skip, columns=columns)
    if exchange is None:
        exchange = "ring" if max(keys.sizes) > _FEW else "gather"
    if exchange == "ring":
        rows, sums = _RingLogSumExp.apply(q, k, similarity, keys, skip, columns)
        return rows, sums
    rows, sums = pairwise_logsumexp(q, keys.gathered(k), similarity, skip=skip, columns=columns)
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
        ctx.similarity, keys, skip, columns = given
        rows = q.new_full((len(q),), -torch.inf)
        results = _Results(keys, torch.logaddexp)
        for hop, owner, block in _blocks(k, keys):
            left_out = _within(skip, keys, owner)
            part, sums = _logsumexp(PairBlock(q, block, ctx.similarity, left_out), columns)
            rows = torch.logaddexp(rows, part)
            if sums is not None:
                results.send(hop, sums)
        own, ctx.keys = results.total() if columns else None, keys
        ctx.save_for_backward(q, k, skip, rows, own)
        return rows, own

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, skip, rows, own = ctx.saved_tensors
        keys, width = ctx.keys, k.shape[1]
        # Keys travel together with their sums and the gradients of these.
        with_sums = [] if own is None else [own[:, None], grads[1][:, None]]
        to_q, results = torch.zeros_like(q), _Results(keys, torch.add)
        for hop, owner, block in _blocks(torch.cat([k, *with_sums], dim=1), keys):
            columns = None if own is None else (block[:, width], block[:, width + 1])
            left_out = _within(skip, keys, owner)
            pairs = PairBlock(q, block[:, :width], ctx.similarity, left_out)
            pulled, to_block = _gradient(pairs, (rows, grads[0]), columns)
            to_q += pulled
            results.send(hop, to_block)
        return to_q, results.total(), None, None, None, None


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


def _within(skip: Tensor | None, keys: Sharding, owner: int) -> Tensor | None:
    """Return ``skip`` counted from the first key of ``owner``, -1 where it is not of its keys."""
    if skip is None:
        return None
    place = skip - keys.starts[owner]
    return torch.where((place >= 0) & (place < keys.sizes[owner]), place, -1)


def _blocks(own: Tensor, keys: Sharding) -> Iterator[tuple[int, int, Tensor]]:
    """Yield ``(hop, owner, block)``, own rows first; the next block is received meanwhile."""
    ranks, block = len(keys.sizes), own.contiguous()
    for hop in range(ranks):
        owner = (keys.rank - hop) % ranks
        if hop == ranks - 1:
            yield hop, owner, block
            return
        coming = block.new_empty(keys.sizes[owner - 1], *block.shape[1:])
        pending = _swap(block, keys.rank + 1, coming, keys.rank - 1, keys, _KEYS)
        yield hop, owner, block
        _wait(pending)
        block = coming


class _Results:
    """Collects what all ranks found about the keys of this one."""

    def __init__(self, keys: Sharding, combine: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.keys, self.combine = keys, combine
        self.own = torch.empty(0)
        # Messages, the tensor received, and the tensor sent, which must live until it has left.
        self.pending: tuple[list[dist.Work], Tensor, Tensor] | None = None

    def send(self, hop: int, found: Tensor) -> None:
        """Send what was found at a hop to the owner of the keys, and receive what others found."""
        if hop == 0:
            self.own = found
            return
        self._receive()
        coming, found, rank = torch.empty_like(self.own), found.contiguous(), self.keys.rank
        messages = _swap(found, rank - hop, coming, rank + hop, self.keys, _RESULTS)
        self.pending = messages, coming, found

    def total(self) -> Tensor:
        """Return what all ranks found about own keys."""
        self._receive()
        return self.own

    def _receive(self) -> None:
        if self.pending is not None:
            messages, found, _ = self.pending
            _wait(messages)
            self.own, self.pending = self.combine(self.own, found), None


def _swap(
    leaving: Tensor, to: int, coming: Tensor, source: int, keys: Sharding, tag: int
) -> list[dist.Work]:
    """Start to send one array and to receive another; empty arrays need no message."""
    ranks = len(keys.sizes)
    wanted = [(dist.isend, leaving, to), (dist.irecv, coming, source)]
    messages = [
        dist.P2POp(call, array, group=keys.group, tag=tag, group_peer=peer % ranks)
        for call, array, peer in wanted
        if len(array)
    ]
    return dist.batch_isend_irecv(messages) if messages else []


def _wait(pending: list[dist.Work]) -> None:
    for message in pending:
        message.wait()
