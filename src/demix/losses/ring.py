"""The log-sum-exp over pairs whose queries and keys are sharded over several ranks.

Every rank keeps its own queries. Keys come to them in one of two ways, which give the same numbers:
*gathered*, all at once, or in a *ring*, the keys of one rank after those of another, while the next
ones are in transit. Sums along columns and gradients of keys return to the rank of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.process_group.sharding import Sharding, log_summed
from demix.losses.similarities import PairBlock, PairSimilarity
from demix.losses.streaming import block_gradient, block_logsumexp, pairwise_logsumexp

Exchange = Literal["ring", "gather"]
# With fewer keys on a rank, a hop takes longer than what is computed meanwhile (docs/scale.md).
_FEW = 1024
_KEYS, _RESULTS = 0, 1


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
    """Return the log-sum-exp of own queries over all ranks' keys, and of own keys over all queries.

    The results are those of :func:`pairwise_logsumexp` for all queries and keys in one process;
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


class _RingLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, *given: Any) -> tuple[Tensor, Tensor | None]:
        ctx.similarity, keys, skip, columns = given
        rows = q.new_full((len(q),), -torch.inf)
        results = _Results(keys, torch.logaddexp)
        for hop, owner, block in _blocks(k, keys):
            left_out = _within(skip, keys, owner)
            part, sums = block_logsumexp(PairBlock(q, block, ctx.similarity, left_out), columns)
            rows = torch.logaddexp(rows, part)
            if sums is not None:
                results.send(hop, sums)
        own = results.total() if columns else None
        ctx.keys = keys
        ctx.save_for_backward(q, k, skip, rows, own)
        return rows, own

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        q, k, skip, rows, own = ctx.saved_tensors
        keys, width = ctx.keys, k.shape[1]
        # Keys travel together with their sums and the gradients of these.
        with_sums = [] if own is None else [own[:, None], grads[1][:, None]]
        to_q, results = torch.zeros_like(q), _Results(keys, torch.add)
        for hop, owner, block in _blocks(torch.cat([k, *with_sums], dim=1), keys):
            columns = None if own is None else (block[:, width], block[:, width + 1])
            left_out = _within(skip, keys, owner)
            pairs = PairBlock(q, block[:, :width], ctx.similarity, left_out)
            pulled, to_block = block_gradient(pairs, (rows, grads[0]), columns)
            to_q += pulled
            results.send(hop, to_block)
        return to_q, results.total(), None, None, None, None


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
