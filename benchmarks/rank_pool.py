"""Processes of one thread each that measure together what ranks do."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import torch
from torch import distributed as dist

from benchmarks.memory import MALLOC
from benchmarks.processes import environment
from demix._support.errors import DemixError
from demix._support.process_group.group import keep_cores
from demix.papers.workers.executors import process_environment


class Pool:
    """Ranks of gloo on this machine, that wait for something to do.

    Parameters
    ----------
    count : int
        How many.
    method : str
        How processes are begun, a start method of `multiprocessing`. Fresh ones by default, for
        forked ones would inherit threads and memory.
    """

    def __init__(self, count: int, *, method: str = "spawn") -> None:
        context: Any = get_context(method)
        self._folder = tempfile.TemporaryDirectory()
        store = (Path(self._folder.name) / "store").as_uri()
        self._ends: list[Connection] = []
        self._processes = []
        with process_environment(**MALLOC, **environment()):
            for rank in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(rank, count, store, theirs), daemon=True
                )
                process.start()
                theirs.close()
                self._ends.append(ours)
                self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
            process.join()
        self._folder.cleanup()

    def run(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module on every rank, at the same time; return what rank 0 gets."""
        for end in self._ends:
            end.send((task, arguments))
        try:
            answers = [end.recv() for end in self._ends]
        except EOFError:
            raise DemixError(
                f"A process that measures {task.__name__} has ended, perhaps for want of memory; "
                "free some and try again."
            ) from None
        return answers[0]


def _serve(rank: int, count: int, store: str, end: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which is for the process that began this one
    torch.set_num_threads(1)
    keep_cores()
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=count)
    with suppress(EOFError):  # that process has ended
        while True:
            task, arguments = end.recv()
            end.send(task(*arguments))
