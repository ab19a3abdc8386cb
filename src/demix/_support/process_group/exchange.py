"""Exchange of arrays between ranks, with gradients.

Each rank calls ``backward`` on its own loss. A tensor then receives the gradient of the *sum* of
all ranks' losses, so that the average over ranks, as `DistributedDataParallel` takes it, is the
gradient of the average loss. Every rank has to call each of these functions, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def gathered(x: Tensor, sizes: Sequence[int], group: dist.ProcessGroup) -> Tensor:
    """Return the rows of all ranks, ``(sum(sizes), ...)``, from ``(sizes[rank], ...)`` on each."""
    made: Tensor = _Gathered.apply(x, tuple(sizes), group)
    return made


def collected(x: Tensor, sizes: Sequence[int], group: dist.ProcessGroup) -> Tensor:
    """Return the rows of all ranks on rank 0, without a gradient, and ``x`` on the others."""
    own, leads = _padded(x.detach(), max(sizes)), dist.get_rank(group) == 0
    parts = list(x.new_empty(len(sizes), *own.shape)) if leads else None
    dist.gather(own, parts, group=group, group_dst=0)
    if parts is None:
        return x
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


def summed(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return the sum of what the ranks have."""
    made: Tensor = x if group is None else _Summed.apply(x, group)
    return made


def log_summed(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return ``log sum_r exp x_r`` over the ranks; a rank without a term has ``-inf``."""
    made: Tensor = x if group is None else _LogSummed.apply(x, group)
    return made


def shared_gradient(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Return ``x``, which one rank holds alone, with the gradient of the average loss."""
    if group is not None:
        x = _SharedGradient.apply(x, dist.get_world_size(group))
    return x


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], group: dist.ProcessGroup) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        # All messages have one length, as some backends require.
        parts = list(x.new_empty(len(sizes), max(sizes), *x.shape[1:]))
        dist.all_gather(parts, _padded(x, max(sizes)), group=group)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        sizes, (grad,) = ctx.sizes, grads
        parts = [_padded(part, max(sizes)) for part in grad.split(sizes)]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts, group=ctx.group)
        return own[: sizes[dist.get_rank(ctx.group)]], None, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return _total(x, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _total(grads[0], ctx.group), None


class _LogSummed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        highest = x.clone()
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=group)
        highest.masked_fill_(highest == -torch.inf, 0)
        result = _total((x - highest).exp_(), group).log_().add_(highest)
        ctx.group = group
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        x, result = ctx.saved_tensors
        weight = torch.where(x == -torch.inf, 0, (x - result).exp())
        return weight.mul_(_total(grads[0], ctx.group)), None


class _SharedGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: int) -> Tensor:
        ctx.ranks = ranks
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] / ctx.ranks, None


def _total(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def _padded(x: Tensor, rows: int) -> Tensor:
    if len(x) == rows:
        return x.contiguous()
    return torch.cat([x, x.new_zeros(rows - len(x), *x.shape[1:])])
