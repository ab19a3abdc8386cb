"""Tasks of any executor, as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Task = TypeVar("Task")

# How long a change may wait to be shown.
_LOOK = 0.2


class Here(Executor):
    """Calls each function at once, in this process; what is the same everywhere is run like this.

    Examples
    --------
    >>> from demix._support.workers.tasks import Here
    >>> Here().submit(abs, -1).result()
    1
    """

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
    """Let an executor call ``function`` on each task, and yield each once it is finished.

    Parameters
    ----------
    executor : Executor
        Who does it.
    function : callable
        What is done to each task.
    tasks : iterable
        Handed over one after the other; what is finished at once is yielded before the next.
    meanwhile : callable
        Called a few times a second while nothing is finished.

    Yields
    ------
    tuple
        A task and its future, which is done. If the caller stops early, the others are cancelled.

    Examples
    --------
    >>> from demix._support.workers.tasks import Here, completed
    >>> [(task, future.result()) for task, future in completed(Here(), abs, [-1, -2])]
    [(-1, 1), (-2, 2)]
    """
    finished: SimpleQueue[tuple[Task, Future[Any]]] = SimpleQueue()

    def finish(task: Task, future: Future[Any]) -> None:
        finished.put((task, future))

    begun: list[Future[Any]] = []
    yielded = 0
    try:
        for task in tasks:
            begun.append(executor.submit(function, task))
            begun[-1].add_done_callback(partial(finish, task))
            while not finished.empty():
                yield finished.get()
                yielded += 1
        while yielded < len(begun):
            try:
                done = finished.get(timeout=_LOOK)
            except Empty:
                meanwhile()
                continue
            yield done
            yielded += 1
    finally:
        for future in begun:
            future.cancel()
