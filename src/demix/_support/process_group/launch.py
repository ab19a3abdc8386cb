"""Joining the ranks that `torchrun` has started."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Timer

import torch
from torch import distributed as dist

from demix._support.errors import DemixError, reason, warn
from demix._support.process_group.group import Ranks

# Seconds after which waiting for other ranks is said, and after which it is given up. torch may try
# once more.
_SOON, _LONGEST = 3.0, 60.0


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
    place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    words = f"Waiting for the other ranks at {place}; unset RANK to run alone."
    waiting = Timer(_SOON, warn, [words])
    waiting.start()
    try:
        store, rank, count = next(dist.rendezvous("env://", timeout=timedelta(seconds=_LONGEST)))
        store.set_timeout(dist.default_pg_timeout)
        store = dist.PrefixStore(_life(), store)
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


def _life() -> str:
    """Return a name for this start of ranks: their store outlives them, with old addresses."""
    # Several machines may count restarts differently.
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return f"life {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if alone else ''}"
