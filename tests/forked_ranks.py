"""Ranks of gloo for tests: processes that are forked from one that has imported everything."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist


def fork_ranks(count: int, work: Callable[[int], None]) -> list[int]:
    """Run ``work(rank)`` on so many ranks, and return their exit codes; a traceback is printed."""
    with tempfile.TemporaryDirectory() as folder:
        children = [_forked(rank, count, work, Path(folder) / "store") for rank in range(count)]
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _forked(rank: int, count: int, work: Callable[[int], None], store: Path) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo",
            init_method=store.as_uri(),
            rank=rank,
            world_size=count,
            timeout=timedelta(minutes=10),
        )
        work(rank)
        dist.destroy_process_group()
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
