"""The ranks of a process group: which one this process is, and what it hears from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError

T = TypeVar("T")


class LostRank(DemixError):
    """Another rank has ended before its time; what it takes to go on is still there."""


@dataclass(frozen=True)
class Ranks:
    """The processes that train together, or this one alone.

    Attributes
    ----------
    group : ProcessGroup or None
        The ranks of `torch.distributed`; None for a process alone.

    Examples
    --------
    >>> from demix._support.process_group.group import Ranks
    >>> alone = Ranks.current()
    >>> alone.count, alone.leads, alone.broadcast("hello")
    (1, True, 'hello')
    """

    group: dist.ProcessGroup | None = None

    @classmethod
    def current(cls) -> Ranks:
        """Return the ranks of the default group, if one has been initialised."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(checked_group(dist.group.WORLD))

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 if self.group is None else dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """Which of them this process is, from 0."""
        return 0 if self.group is None else dist.get_rank(self.group)

    @property
    def leads(self) -> bool:
        """Whether this is the process that reads, writes and prints: rank 0."""
        return self.rank == 0

    def broadcast(self, value: T) -> T:
        """Return the ``value`` of rank 0, plain data or tensors, on every rank."""
        if self.group is None:
            return value
        message = [value if self.leads else None]
        dist.broadcast_object_list(message, group=self.group, group_src=0)
        said: Any = message[0]
        return said

    def average(self, x: Tensor) -> Tensor:
        """Return the mean of a tensor over the ranks, without a gradient."""
        if self.group is None:
            return x.detach()
        total = x.detach().clone()
        dist.all_reduce(total, group=self.group)
        return total / self.count

    def check_same(self, value: Any, what: str) -> None:
        """Refuse, on every rank, if the ranks were told different things."""
        if self.group is None:
            return
        told: list[Any] = [None] * self.count
        dist.all_gather_object(told, value, group=self.group)
        other = next((rank for rank, said in enumerate(told) if said != told[0]), None)
        if other is not None:
            raise DemixError(
                f"All ranks must be given the same {what}, but rank {other} has another than rank "
                "0; give all of them the same arguments, a number as seed included."
            )

    def explain(self, error: RuntimeError) -> None:
        """Say it in a sentence if an error is what the backend says when another rank is gone."""
        if self.group is not None and _is_of_backend(error):
            raise LostRank(
                f"Rank {self.rank} of {self.count} has lost another rank, which was killed or "
                "failed; start the same command again, and it goes on from its last checkpoint."
            ) from error


def _is_of_backend(error: RuntimeError) -> bool:
    known = isinstance(error, torch.distributed.DistError)
    return known or any(name in str(error).lower() for name in ("gloo", "nccl", "connection"))


def checked_group(group: dist.ProcessGroup | None) -> dist.ProcessGroup | None:
    """Return the group, or None for a process alone; refuse what is no group.

    Examples
    --------
    >>> from demix._support.process_group.group import checked_group
    >>> checked_group(256)
    Traceback (most recent call last):
    demix.DemixError: group must be a process group of torch.distributed, but got 256; ...
    """
    if group is None:
        return None
    if not isinstance(group, dist.ProcessGroup):
        raise DemixError(
            f"group must be a process group of torch.distributed, but got {group!r}; pairs are "
            "contrasted in groups of some with InfoNCE(within=...)."
        )
    return None if dist.get_world_size(group) == 1 else group
