"""A call of known size, for a process that measures it; without torch, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def allocate(mebibytes: int) -> Callable[[], None]:
    """Return a call that makes an array of ones and drops it again."""
    inputs = np.ones(2**20)  # must not count

    def call() -> None:
        np.full(mebibytes * 2**20 // 4, inputs[0], dtype=np.float32)

    return call
