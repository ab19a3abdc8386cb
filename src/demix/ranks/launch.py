"""Commands that `torchrun` starts on every rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed as dist

from demix.ranks.group import Ranks


def under_torchrun() -> bool:
    """Tell whether this process is one of several that `torchrun`, or its like, has started.

    Examples
    --------
    >>> from demix.ranks import under_torchrun
    >>> under_torchrun()
    False
    """
    told = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)
    return told and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the other ranks if `torchrun` has started several, and leave them in the end.

    Arrays on a processor are exchanged by gloo, those on a GPU, one for each rank, by nccl.
    """
    if not under_torchrun() or dist.is_initialized():
        yield Ranks.current()
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"
    store, rank, count = next(dist.rendezvous("env://"))
    dist.init_process_group(
        backend, store=dist.PrefixStore(_life(), store), rank=rank, world_size=count
    )
    ranks = Ranks.current()
    try:
        yield ranks
    except RuntimeError as error:
        ranks.explain(error)
        raise
    finally:
        dist.destroy_process_group()


def _life() -> str:
    """Name the present life of ranks that `torchrun --max-restarts` begins again.

    Their store outlives them, and with it the addresses of the ranks that are gone: whoever came
    first would look for the others there. Several machines may count restarts differently.
    """
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return f"life {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if alone else ''}"
