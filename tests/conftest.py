"""Puts this folder on the path, so that all tests find `browser` and `command`."""

import gc
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from command import Commands

# Several folders have one; as modules with doctests they would get in each other's way.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# A shell starts background jobs with Ctrl-C ignored, and the commands that tests interrupt would
# inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Keep the collector from visiting thousands of tests and all of torch again and again, while they
# are imported and after that.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what is there by now alone, and collect from here on."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure chance by a few draws, where nothing is asked of it but that it is there."""
    from demix.metrics.blocks import Sampling

    orders = Sampling.orders

    def few(self: Sampling, number: int, **more: bool) -> object:
        return orders(self, number if more else 3, **more)

    monkeypatch.setattr(Sampling, "orders", few)


@pytest.fixture
def abyss(tmp_path) -> Iterator[Path]:
    """A folder with more folders in each other than Python calls functions."""
    # By short paths: along the whole of one the system would go through all of it each time.
    first, next_ = tmp_path / "d", tmp_path / "next"
    for _ in range(1500):
        next_.mkdir()
        with suppress(FileNotFoundError):
            first.rename(next_ / "d")
        next_.rename(first)
    yield tmp_path
    while first.exists():
        first.rename(next_)
        with suppress(FileNotFoundError):
            (next_ / "d").rename(first)
        shutil.rmtree(next_)


@pytest.fixture(scope="session")
def demix(tmp_path_factory) -> Iterator[Commands]:
    """The `demix` command, without the seconds of importing."""
    commands = Commands(tmp_path_factory.mktemp("commands"))
    yield commands
    commands.close()
