"""A call of known size, for a process that measures it."""

from __future__ import annotations

from collections.abc import Callable

import torch


def allocate(mebibytes: int) -> Callable[[], None]:
    """Return a call that makes a tensor of ones and drops it again."""
    inputs = torch.ones(2**20, dtype=torch.float64)  # must not count

    def call() -> None:
        torch.full((mebibytes * 2**20 // 4,), inputs[0].item(), dtype=torch.float32)

    return call
