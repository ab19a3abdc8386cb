"""Torch's own random numbers, where nothing else can be asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw torch's global random numbers from a seed, and leave the user's as they were.

    Examples
    --------
    >>> import torch
    >>> from demix.estimators.seeding import seeded
    >>> before = torch.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(1)
    >>> torch.equal(torch.get_rng_state(), before)
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
