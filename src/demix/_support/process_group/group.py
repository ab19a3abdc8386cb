"""The ranks of a process group, how `torchrun` starts them, and small messages between them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Timer
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError, reason, warn

T = TypeVar("T")
_SOON, _LONGEST = 3.0, 60.0  # seconds after which waiting for others is said, and given up


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


def under_torchrun() -> bool:
    """Tell whether `torchrun` has started this process as one of several."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ):
        return False
    count = _number("WORLD_SIZE", 1, 2**31 - 1)
    _number("MASTER_PORT", 1, 2**16 - 1)
    _number("RANK", 0, count - 1)  # a larger one would wait for the others for ever
    return count > 1


def _number(name: str, first: int, last: int) -> int:
    """Return a number from the environment, by default 0."""
    text = os.environ.get(name, "0")
    if not re.fullmatch("[0-9]{1,10}", text) or not first <= int(text) <= last:
        raise DemixError(
            f"Expected a whole number from {first} to {last} in the environment variable {name}, "
            f"but it is {text!r}; let torchrun set it, or unset it."
        )
    return int(text)


def keep_cores() -> None:
    """Let a rank that wakes up wait for a core, so that it interrupts no other rank's work."""
    # It would share that core for milliseconds, at each exchange, while its own core is idle.
    # Threads inherit this: call it before those of the backend start.
    if sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the other ranks if `torchrun` has started several, and leave them in the end."""
    if not under_torchrun() or dist.is_initialized():
        yield Ranks.current()
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(_number("LOCAL_RANK", 0, torch.cuda.device_count() - 1))
        backend = "cpu:gloo,cuda:nccl"
    else:
        keep_cores()
    place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    words = f"Waiting for the other ranks at {place}; unset RANK to run alone."
    waiting = Timer(_SOON, warn, [words])
    waiting.start()
    try:
        store, rank, count = next(dist.rendezvous("env://", timeout=timedelta(seconds=_LONGEST)))
        store.set_timeout(dist.default_pg_timeout)
        # The store outlives a start of ranks; several machines may count restarts differently.
        alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
        life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if alone else ""
        store = dist.PrefixStore(f"life {life}", store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=count)
    except (ValueError, RuntimeError) as error:
        raise DemixError(
            f"Cannot join the other ranks ({reason(error)}); let torchrun set MASTER_ADDR and "
            "MASTER_PORT, or unset RANK."
        ) from error
    finally:
        waiting.cancel()
    ranks = Ranks.current()
    try:
        yield ranks
    except RuntimeError as error:
        ranks.explain(error)
        raise
    finally:
        dist.destroy_process_group()
