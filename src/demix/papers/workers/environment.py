"""Threads and environment variables of processes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# All threads share one environment.
_LOCK = threading.Lock()


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute on so many threads, in torch and in the libraries below numpy; None changes nothing.

    The last bits of a sum depend on how many threads share it.
    """
    if count is None:
        yield
        return
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(count):
        torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def keep_to(count: int) -> None:
    """Limit this process, and all libraries that it has yet to load, to so many threads."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(count)
    if "threadpoolctl" in sys.modules:
        sys.modules["threadpoolctl"].threadpool_limits(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


@contextmanager
def process_environment(**variables: str) -> Iterator[None]:
    """Set variables for processes that are started meanwhile, and keep them off this folder.

    ``python -c``, with which `multiprocessing` starts all its processes, looks for modules in the
    current folder first: it would run a stranger's ``struct.py``.
    """
    wanted = variables | {"PYTHONSAFEPATH": "1"}
    with _LOCK:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
