"""A clock for tests of what must not wait for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail what takes longer; raised where no handler of errors takes it."""

    def ring(*_: object) -> None:
        pytest.fail(f"it takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
