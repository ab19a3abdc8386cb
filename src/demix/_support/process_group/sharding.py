"""How rows are sharded over ranks, and exchanged between them with gradients.

Each rank calls ``backward`` on its own loss. A tensor then receives the gradient of the *sum* of
all ranks' losses, so that the average over ranks, as `DistributedDataParallel` takes it, is the
gradient of the average loss. Every rank has to call each of these functions, in the same order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError
from demix._support.process_group.group import checked_group


@dataclass(frozen=True)
class Sharding:
    """The number of rows on each rank, the rank of this process, and the group (None if alone)."""

    sizes: tuple[int, ...]
    rank: int = 0
    group: dist.ProcessGroup | None = None

    @property
    def total(self) -> int:
        """Rows on all ranks."""
        return sum(self.sizes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each rank."""
        return tuple(sum(self.sizes[:rank]) for rank in range(len(self.sizes)))

    @property
    def own(self) -> slice:
        """The rows of this process among all."""
        return slice(sum(self.sizes[: self.rank]), sum(self.sizes[: self.rank + 1]))

    def gathered(self, x: Tensor) -> Tensor:
        """Return the rows ``(total, ...)`` of all ranks, with gradients."""
        return x if self.group is None else _Gathered.apply(x, self.sizes, self.group)

    def of_own(self, x: Tensor) -> Tensor:
        """Return what each rank has ``(total,)`` for own rows ``(ranks, own)``, with gradients."""
        if self.group is None:
            return x[None]
        sizes = list(self.sizes)
        own = [sizes[self.rank]] * len(sizes)
        return _Exchanged.apply(x, sizes, own, self.group).view(len(own), -1)

    def collected(self, x: Tensor) -> Tensor:
        """Return the rows ``(total, ...)`` of all ranks on rank 0, and ``x`` on the others."""
        if self.group is None:
            return x
        own = _padded(x.detach(), max(self.sizes))
        parts = list(x.new_empty(len(self.sizes), *own.shape)) if self.rank == 0 else None
        dist.gather(own, parts, group=self.group, group_dst=0)
        return x if parts is None else _joined(parts, self.sizes)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean ``()`` of numbers ``(n,)``, weighted by this rank's share of all rows."""
        # Its average over ranks is the mean over all rows.
        if self.group is None:
            return x.mean()
        if self.total == 0:
            raise DemixError("A batch must have at least one row, but no rank has any.")
        return x.sum() * len(self.sizes) / self.total


def shardings(group: dist.ProcessGroup | None, *arrays: Tensor) -> list[Sharding]:
    """Return how the rows of each array are sharded, after one exchange of a few numbers."""
    # Ranks may have different numbers of rows, but of the same shape.
    group = checked_group(group)
    if group is None:
        return [Sharding((len(x),)) for x in arrays]
    ranks = dist.get_world_size(group)
    own = torch.tensor([[len(x), math.prod(x.shape[1:])] for x in arrays]).to(arrays[0].device)
    found = list(own.new_empty(ranks, *own.shape))
    dist.all_gather(found, own, group=group)
    counts = torch.stack(found).cpu()
    if bool((counts[..., 1] != counts[0, :, 1]).any()):
        raise DemixError(
            "Ranks must hold rows of one width, but have rows of "
            f"{', '.join(str(row[:, 1].tolist()) for row in counts)} numbers."
        )
    rank = dist.get_rank(group)
    return [Sharding(tuple(sizes), rank, group) for sizes in counts[..., 0].T.tolist()]


def even_sharding(total: int, group: dist.ProcessGroup | None) -> Sharding:
    """Return the most even sharding of ``total`` rows, without an exchange."""
    group = checked_group(group)
    if group is None:
        return Sharding((total,))
    ranks = dist.get_world_size(group)
    edges = [total * rank // ranks for rank in range(ranks + 1)]
    return Sharding(tuple(b - a for a, b in pairwise(edges)), dist.get_rank(group), group)


def summed(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return the sum of what the ranks have."""
    return x if group is None else _Summed.apply(x, group)


def log_summed(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return ``log sum_r exp x_r`` over the ranks; a rank without a term has ``-inf``."""
    if group is None:
        return x
    highest = x.detach().clone()
    dist.all_reduce(highest, dist.ReduceOp.MAX, group=group)
    highest.masked_fill_(highest == -torch.inf, 0)
    return summed((x - highest).exp(), group).log() + highest


def shared_gradient(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return ``x``, which one rank holds alone, with the gradient of the average loss."""
    if group is not None:
        x, ranks = x.view_as(x), dist.get_world_size(group)
        if x.requires_grad:
            x.register_hook(lambda gradient: gradient / ranks)
    return x


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], group: dist.ProcessGroup) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        # All messages have one length, as some backends require.
        parts = list(x.new_empty(len(sizes), max(sizes), *x.shape[1:]))
        dist.all_gather(parts, _padded(x, max(sizes)), group=group)
        return _joined(parts, sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        sizes, (grad,) = ctx.sizes, grads
        parts = [_padded(part, max(sizes)) for part in grad.split(sizes)]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts, group=ctx.group)
        return own[: sizes[dist.get_rank(ctx.group)]], None, None


class _Exchanged(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup
    ) -> Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        found = x.new_empty(sum(received))
        dist.all_to_all_single(found, x.contiguous(), received, sent, group=group)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        back = _Exchanged.forward(ctx, grads[0], ctx.received, ctx.sent, ctx.group)
        return back, None, None, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return _total(x, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _total(grads[0], ctx.group), None


def _total(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def _padded(x: Tensor, rows: int) -> Tensor:
    if len(x) == rows:
        return x.contiguous()
    return torch.cat([x, x.new_zeros(rows - len(x), *x.shape[1:])])


def _joined(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
