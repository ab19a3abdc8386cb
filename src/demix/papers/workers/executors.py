"""Executors: this process, others of this machine that survive their deaths, or a cluster.

The processes are not pebble's pool: its processes share one pipe and its locks, so that one which
is killed while it waits or sends ends all; and they outlive a parent that is killed.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import (
    forkserver,
    get_all_start_methods,
    get_context,
    parent_process,
    resource_tracker,
)
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from demix._support.errors import DemixError, demix_errors, need
from demix._support.provenance import cores

Task = TypeVar("Task")

# Seconds between two calls of `meanwhile`, and within which a scheduler has to answer.
_PAUSE, _PATIENCE = 0.2, 10
_TRIES = 3
_LOCK = threading.Lock()  # all threads share one environment


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

    ``meanwhile`` is called a few times a second. If the caller stops, other tasks are cancelled.
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
                yield done.get(timeout=_PAUSE)
                yielded += 1
            except Empty:
                meanwhile()
    finally:
        for future in submitted:
            future.cancel()


@contextmanager
def open_executor(
    name: str, *, preload: Sequence[str] = (), patience: float = _PATIENCE
) -> Iterator[Executor]:
    """Give workers (``local``, ``local:N``) or a cluster (``dask:ADDRESS``) by their name."""
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
    import asyncio  # whoever renders need not wait for it

    dask = need("distributed", "A Dask cluster", "cluster")
    problem = f"No Dask scheduler answers at {address}"
    advice = "give the address that 'dask scheduler' shows, such as tcp://10.0.0.1:8786"
    with demix_errors(problem, advice):
        # A server of another kind may be silent, or claim any length.
        try:
            asyncio.run(asyncio.wait_for(_reach(dask, address, patience), 2 * patience))
        except (TimeoutError, MemoryError) as error:
            raise OSError("what answers is none") from error
        client = dask.Client(address, timeout=patience, set_as_default=False)
    with client:
        yield client.get_executor(pure=False)


async def _reach(dask: Any, address: str, patience: float) -> None:
    """Connect and close; a client that fails in an odd way takes long to end."""
    settings = dask.Security().get_connection_args("client")
    # It prints what it cannot read with a traceback, before it raises.
    log = logging.getLogger("distributed.protocol.core")
    log.disabled = True
    try:
        (await dask.comm.connect(address, timeout=patience, **settings)).abort()
    finally:
        log.disabled = False


class Workers(Executor):
    """Processes of this machine.

    A process that is killed costs its own task only, which another one repeats; a task that has
    cost three processes fails. They share the cores, and end with the process that started them,
    which alone hears Ctrl-C, or at once when an exception leaves the ``with`` block. By default
    there is one for each core, forked from one that imports the modules of ``preload``.
    """

    def __init__(self, count: int | None = None, *, preload: Sequence[str] = ()) -> None:
        self.count = cores() if count is None else count
        if self.count < 1:
            raise DemixError(f"The number of processes must be at least 1, but got {self.count}.")
        # Each thread waits for a process of its own.
        self._threads = ThreadPoolExecutor(self.count, "demix-worker")
        self._local = threading.local()
        self._processes: list[_Process] = []
        self._lock = threading.Lock()
        self._killed = False
        self._method = _prepare(preload)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let the next free process call ``fn``."""
        return self._threads.submit(self._call, pickle.dumps((fn, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and end the processes once there are none left."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for process in self._processes:
                process.pipe.close()
                process.process.join()

    def kill(self) -> None:
        """End all processes at once, whatever they are doing."""
        with _interrupts_ignored():
            with self._lock:
                self._killed = True
                for process in self._processes:
                    process.kill()
            self.shutdown(cancel_futures=True)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self.kill()
            return
        try:
            self.shutdown()
        except KeyboardInterrupt:
            self.kill()
            raise

    def _call(self, task: bytes) -> Any:
        for _ in range(_TRIES):
            process = self._own()
            try:
                fine, value = process.call(task)
            except (EOFError, ConnectionError):
                self._local.process = None
                process.kill()
                with self._lock:
                    self._processes.remove(process)
                continue
            if fine:
                return value
            raise value
        raise DemixError(
            f"{_TRIES} processes in a row were ended from outside, perhaps for want of memory; "
            "use fewer at once."
        )

    def _own(self) -> _Process:
        """Return the process of this thread, which is started if there is none."""
        process: _Process | None = getattr(self._local, "process", None)
        if process is None:
            with self._lock:
                if self._killed:
                    raise DemixError("The processes were ended before the task was.")
                process = _Process(self._method, max(1, cores() // self.count))
                self._processes.append(process)
            self._local.process = process
        return process


class _Process:
    """One process, which does one task after the other."""

    def __init__(self, method: str, threads: int) -> None:
        context: Any = get_context(method)
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, threads), daemon=True)
        # This restarts the process that others are forked from if that was killed.
        with process_environment():
            self.process.start()
        there.close()

    def call(self, task: bytes) -> tuple[bool, Any]:
        """Return whether a task went well, and its result or its exception."""
        self.pipe.send_bytes(task)
        return pickle.loads(self.pipe.recv_bytes())

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute on so many threads, on which last bits of sums depend; None changes nothing."""
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
        before = {name: os.environ[name] for name in wanted if name in os.environ}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name in wanted:
                del os.environ[name]
            os.environ.update(before)


def _prepare(preload: Sequence[str]) -> str:
    """Start the process that others are forked from, without threads; return how they start."""
    if "forkserver" not in get_all_start_methods():
        return "spawn"
    get_context("forkserver").set_forkserver_preload(list(preload))
    advice = "set TMPDIR to a folder of a short name that you may write to"
    # By it that process learns which others have ended; who starts demix may have blocked it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    with process_environment(OMP_NUM_THREADS="1"), demix_errors("Cannot start processes", advice):
        resource_tracker.ensure_running()  # which lets interrupts through at its end
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # which it inherits
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return "forkserver"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C, in the only thread that hears it: masked there, other threads pass it on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe: Connection, threads: int) -> None:
    """Do tasks until the pipe is closed; leave Ctrl-C to the parent, and end with it if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    keep_to(threads)
    with suppress(EOFError, ConnectionError):
        while True:
            task = pipe.recv_bytes()
            try:
                function, args, kwargs = pickle.loads(task)
                answer = pickle.dumps((True, function(*args, **kwargs)))
            except Exception as error:
                if not isinstance(error, DemixError):  # whose message is enough
                    error.add_note(traceback.format_exc())
                answer = pickle.dumps((False, error))
            pipe.send_bytes(answer)


def _follow_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
