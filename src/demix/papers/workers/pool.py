"""Processes of this machine, as an executor that survives their deaths.

Not pebble's pool: its processes share one pipe and its locks, so that one which is killed while it
waits or sends ends all; and they outlive a parent that is killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
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
from typing import Any

from demix._support.errors import DemixError, demix_errors
from demix._support.provenance import cores
from demix.papers.workers.environment import keep_to, process_environment

_TRIES = 3


class Workers(Executor):
    """Processes of this machine.

    A process that is killed costs its own task only, which another one repeats; a task that has
    cost three processes fails. Cores are divided among the processes. Ctrl-C reaches only the
    process that started them. They end with it, even if it is killed, and at once when an exception
    leaves the ``with`` block.

    By default there is one for each core. One process imports the modules of ``preload``, once, and
    the others are forked from it; if such a process runs already, started in Python's own way, it
    stays as it is.
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
        answer: tuple[bool, Any] = pickle.loads(self.pipe.recv_bytes())
        return answer

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()


def _prepare(preload: Sequence[str]) -> str:
    """Start the process that others are forked from, and return how processes are started.

    It has no threads, whose locks a fork would copy in any state, and ignores Ctrl-C.
    """
    if "forkserver" not in get_all_start_methods():
        return "spawn"
    get_context("forkserver").set_forkserver_preload(list(preload))
    advice = "set TMPDIR to a folder of a short name that you may write to"
    with process_environment(OMP_NUM_THREADS="1"), demix_errors("Cannot start processes", advice):
        resource_tracker.ensure_running()  # which lets interrupts through at its end
        with _without_interrupts():
            forkserver.ensure_running()
    return "forkserver"


@contextmanager
def _without_interrupts() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    """Do tasks until the pipe is closed."""
    _follow_parent()
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
    """Leave Ctrl-C to the process that began this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
