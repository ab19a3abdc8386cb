"""Executors by their names, and tasks as they are completed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from demix._support.errors import DemixError, demix_errors, need
from demix.papers.workers.pool import Workers

Task = TypeVar("Task")

# Seconds between two calls of `meanwhile`, and within which a scheduler has to answer.
_PAUSE, _PATIENCE = 0.2, 10


class SerialExecutor(Executor):
    """Calls each function at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call ``fn`` before returning."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # Ctrl-C is none
            future.set_exception(error)
        return future


def completed(
    executor: Executor,
    function: Callable[[Task], Any],
    tasks: Iterable[Task],
    meanwhile: Callable[[], None] = lambda: None,
) -> Generator[tuple[Task, Future[Any]], None, None]:
    """Let an executor call ``function`` on each task, and yield tasks with their futures when done.

    Tasks are submitted one after the other; what is done by then is yielded before the next.
    ``meanwhile`` is called a few times a second while nothing is done. If the caller stops early,
    the other tasks are cancelled.
    """
    done: SimpleQueue[tuple[Task, Future[Any]]] = SimpleQueue()

    def submit(task: Task) -> Future[Any]:
        future = executor.submit(function, task)
        future.add_done_callback(lambda future: done.put((task, future)))
        return future

    submitted: list[Future[Any]] = []
    yielded = 0
    try:
        for task in tasks:
            submitted.append(submit(task))
            while not done.empty():
                yield done.get()
                yielded += 1
        while yielded < len(submitted):
            try:
                finished = done.get(timeout=_PAUSE)
            except Empty:
                meanwhile()
                continue
            yield finished
            yielded += 1
    finally:
        for future in submitted:
            future.cancel()


@contextmanager
def open_executor(
    name: str, *, preload: Sequence[str] = (), patience: float = _PATIENCE
) -> Iterator[Executor]:
    """Give an executor by its name, and close it in the end.

    ``local`` or ``local:N`` are processes of this machine, which import the modules of ``preload``
    at once; ``dask:ADDRESS`` is a cluster, which has to answer within ``patience`` seconds.
    """
    kind, colon, what = name.partition(":")
    if kind == "local" and (not colon or re.fullmatch("0*[1-9][0-9]{0,5}", what)):
        with Workers(int(what) if colon else None, preload=preload) as workers:
            yield workers
    elif kind == "dask" and what:
        with _dask(what, patience) as cluster:
            yield cluster
    else:
        raise DemixError(
            "--executor takes local, local:N with N processes, or dask:ADDRESS with the address "
            f"of a scheduler, but got {name!r}."
        )


@contextmanager
def _dask(address: str, patience: float) -> Iterator[Executor]:
    dask = need("distributed", "A Dask cluster", "cluster")
    problem = f"No Dask scheduler answers at {address}"
    advice = "give the address that 'dask scheduler' shows, such as tcp://10.0.0.1:8786"
    with demix_errors(problem, advice):
        asyncio.run(_reach(dask, address, patience))
        client = dask.Client(address, timeout=patience, set_as_default=False)
    with client:
        yield client.get_executor(pure=False)


async def _reach(dask: Any, address: str, patience: float) -> None:
    """Connect and close; a client that fails in an odd way takes long to end."""
    settings = dask.Security().get_connection_args("client")
    (await dask.comm.connect(address, timeout=patience, **settings)).abort()
