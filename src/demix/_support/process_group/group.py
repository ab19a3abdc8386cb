"""The ranks of a process group, and small messages between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError

T = TypeVar("T")


class LostRank(DemixError):
    """Another rank has ended early; the training can continue from its checkpoint."""


@dataclass(frozen=True)
class Ranks:
    """The processes of `torch.distributed` that train together, or this one alone."""

    group: dist.ProcessGroup | None = None

    @classmethod
    def current(cls) -> Ranks:
        """Return the ranks of the default group, if one has been initialised."""
        ready = dist.is_available() and dist.is_initialized()
        return cls(checked_group(dist.group.WORLD) if ready else None)

    @property
    def count(self) -> int:
        """Number of ranks."""
        return 1 if self.group is None else dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return 0 if self.group is None else dist.get_rank(self.group)

    @property
    def leads(self) -> bool:
        """Whether this is the process that reads, writes and prints: rank 0."""
        return self.rank == 0

    def broadcast(self, value: T) -> T:
        """Return the ``value`` of rank 0, plain data or tensors, on every rank."""
        if self.group is None:
            return value
        message: list[Any] = [value if self.leads else None]
        dist.broadcast_object_list(message, group=self.group, group_src=0)
        return message[0]

    def average(self, x: Tensor) -> Tensor:
        """Return the mean of a tensor over the ranks, without a gradient."""
        if self.group is None:
            return x.detach()
        total = x.detach().clone()
        dist.all_reduce(total, group=self.group)
        return total / self.count

    def check_same(self, value: Any, what: str) -> None:
        """Raise an error on every rank if the ranks were given different values."""
        if self.group is None:
            return
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value, group=self.group)
        other = next((rank for rank, given in enumerate(values) if given != values[0]), None)
        if other is not None:
            raise DemixError(
                f"All ranks must be given the same {what}, but rank {other} has another than rank "
                "0; give all of them the same arguments, a number as seed included."
            )

    def explain(self, error: RuntimeError) -> None:
        """Raise :class:`LostRank` if the backend reports that another rank is gone."""
        words = ("gloo", "nccl", "connection")
        lost = isinstance(error, dist.DistError) or any(w in str(error).lower() for w in words)
        if self.group is not None and lost:
            raise LostRank(
                f"Rank {self.rank} of {self.count} has lost another rank, which was killed or "
                "failed; start the same command again to continue from its last checkpoint."
            ) from error


def checked_group(group: dist.ProcessGroup | None) -> dist.ProcessGroup | None:
    """Return the group, or None for a process alone; raise an error if it is no group."""
    if group is None:
        return None
    if not isinstance(group, dist.ProcessGroup):
        raise DemixError(
            f"group must be a process group of torch.distributed, but got {group!r}; pairs are "
            "contrasted in groups of some with InfoNCE(within=...)."
        )
    return None if dist.get_world_size(group) == 1 else group
