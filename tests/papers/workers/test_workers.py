"""Processes are replaced when they die, end when they should, and share the cores."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import active_children, forkserver
from pathlib import Path

import pytest
import torch
from chores import die, environment, refuse, unreadable, wait_for, whoami

from demix import DemixError
from demix._support.provenance import cores
from demix.papers.workers.executors import (
    SerialExecutor,
    Workers,
    completed,
    open_executor,
    threads,
)


def until(moment):
    stop = time.monotonic() + 120
    while not moment():
        assert time.monotonic() < stop
        time.sleep(0.01)


def waiting(file: Path) -> list[int]:
    """Return the processes that wait for a file."""
    found = [path.suffix[1:] for path in file.parent.glob(f"{file.stem}.*")]
    return [int(name) for name in found if name.isdecimal()]


def lives(process: int) -> bool:
    """Tell whether a process is there and no corpse."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def workers():
    with Workers(2) as workers:
        yield workers


def test_results_come_in_order_from_other_processes(workers):
    assert [*workers.map(abs, range(-5, 0))] == [5, 4, 3, 2, 1]
    assert os.getpid() not in {*workers.map(whoami, range(5))}


def test_a_process_that_is_killed_costs_its_own_task_only(workers, tmp_path):
    """Its task is done again; what the other one does goes on undisturbed."""
    notes = tmp_path / "notes"
    notes.mkdir()
    patient = workers.submit(wait_for, tmp_path / "go.on")
    until(lambda: waiting(tmp_path / "go.on"))
    survivor = workers.submit(die, notes, 1).result()
    [victim] = [int(path.name) for path in notes.iterdir()]
    (tmp_path / "go.on").touch()
    assert [patient.result()] == waiting(tmp_path / "go.on")
    assert survivor not in (victim, patient.result())


def test_a_task_that_kills_three_processes_is_given_up(workers, tmp_path):
    told = r"^3 processes in a row were ended from outside, .* use fewer at once\.$"
    with pytest.raises(DemixError, match=told):
        workers.submit(die, tmp_path, 4).result()
    assert len([*tmp_path.iterdir()]) == 3
    assert workers.submit(abs, -1).result() == 1


def test_an_exception_comes_back_with_the_lines_that_raised_it(workers):
    with pytest.raises(LookupError, match="nothing here") as caught:
        workers.submit(refuse).result()
    assert "in refuse" in caught.value.__notes__[0]
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        workers.submit(unreadable).result()
    assert workers.submit(abs, -1).result() == 1


@pytest.mark.parametrize("count", [1, 2, 3 * cores()])
def test_cores_are_divided_among_the_processes(count):
    with Workers(count) as workers:
        told = {*workers.map(environment, 2 * ["OMP_NUM_THREADS"])}
    assert told == {str(max(1, cores() // count))}


def test_a_place_for_sockets_that_cannot_be_used_is_told(monkeypatch):
    def bind():
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr(forkserver, "ensure_running", bind)
    with pytest.raises(DemixError, match=r"\(AF_UNIX path too long\); set TMPDIR to .*\.$"):
        Workers(1)


def test_an_interrupt_does_not_reach_the_process_that_others_are_forked_from(demix):
    code = """
from multiprocessing import forkserver
from demix.papers.workers.executors import Workers
with Workers(1):
    print(open(f"/proc/{forkserver._forkserver._forkserver_pid}/status").read())
"""
    (blocked,) = re.findall("SigBlk:\t([0-9a-f]+)", demix.run_python(code).stdout)
    assert int(blocked, 16) >> (signal.SIGINT - 1) & 1


def test_processes_are_waited_for_where_the_signal_of_their_end_was_blocked(demix):
    code = """
import os, signal
from demix.papers.workers.executors import Workers
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
signal.alarm(100)
with Workers(1) as workers:
    print(workers.submit(os.getpid).result() > 0)
print("ended")
"""
    done = demix.run_python(code)
    assert done.stdout.split() == ["True", "ended"], done


def test_no_process_is_left_when_all_is_done():
    before = {*active_children()}
    with Workers(2) as workers:
        [*workers.map(whoami, range(4))]
    assert {*active_children()} <= before


def test_an_exception_ends_what_is_running_and_cancels_what_waits(tmp_path):
    with suppress(KeyboardInterrupt), Workers(1) as workers:
        running = workers.submit(wait_for, tmp_path / "never")
        waits = workers.submit(abs, -1)
        until(lambda: waiting(tmp_path / "never"))
        raise KeyboardInterrupt
    [process] = waiting(tmp_path / "never")
    assert not lives(process)
    assert waits.cancelled()
    with pytest.raises(DemixError, match="were ended before the task was"):
        running.result()


PROGRAM = """
import sys
from multiprocessing import active_children
from chores import wait_for
from demix.papers.workers.executors import Workers
try:
    with Workers(2) as workers:
        for number in range(2):
            workers.submit(wait_for, sys.argv[1])
except KeyboardInterrupt:
    print(len(active_children()), "left")
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill", "interrupt"])
def test_processes_end_with_the_one_that_began_them(demix, tmp_path, how):
    file = tmp_path / "never"
    path = f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
    demix.start_python(path + PROGRAM, file)
    demix.send(how, lambda: len(waiting(file)) == 2)
    if how == signal.SIGINT:
        # As the terminal does: everybody hears it.
        for process in waiting(file):
            with suppress(ProcessLookupError):  # the first one has heard it, and ended the others
                os.kill(process, how)
    done = demix.wait()
    assert done.stdout.strip() == ("0 left" if how == signal.SIGINT else "")
    assert done.stderr == ""
    until(lambda: not any(map(lives, waiting(file))))


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadPoolExecutor(2)])
def test_any_executor_is_asked_in_the_same_way(executor):
    found = {task: future.result() for task, future in completed(executor, abs, [-3, -2, -1])}
    assert found == {-3: 3, -2: 2, -1: 1}


def test_here_one_task_is_finished_before_the_next_is_asked_for():
    said = []

    def tasks():
        for number in range(3):
            said.append(f"asked {number}")
            yield number

    for number, future in completed(SerialExecutor(), abs, tasks()):
        said.append(f"got {future.result()}")
        assert said[-2:] == [f"asked {number}", f"got {number}"]


def test_who_stops_early_cancels_the_rest(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        tasks = completed(executor, partial(_first, tmp_path / "go.on"), [0, 1, 2])
        next(tasks)
        later = executor.submit(abs, -1)
        tasks.close()
        (tmp_path / "go.on").touch()
        assert later.result() == 1
    assert not (tmp_path / "2").exists()


def _first(file, number):
    if number:
        wait_for(file)
    (file.parent / str(number)).touch()


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with threads(3):
        assert torch.get_num_threads() == 3
        with threads(None):
            assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    "name",
    [
        "",
        "local:",
        "local:0",
        "local:-1",
        "local:x",
        f"local:{'9' * 5000}",
        "dask",
        "dask:",
        "mpi:2",
    ],
)
def test_a_name_of_no_executor_is_refused(name):
    words = r"^--executor takes local, local:N with N processes, or dask:ADDRESS .* but got '.*'\.$"
    with pytest.raises(DemixError, match=words) as caught, open_executor(name):
        pass
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "localhost", "x://y:1", "tls://127.0.0.1:9"])
def test_a_scheduler_that_does_not_answer_is_named(address):
    with (
        pytest.raises(DemixError, match=rf"^No Dask scheduler answers at {address} \(.*\.$"),
        open_executor(f"dask:{address}", patience=0.1),
    ):
        pass


# The last one is a message of Dask that holds nothing.
SAID = {"silent": b"", "http": b"HTTP/1.1 400 Bad Request\r\n\r\n", "empty": bytes([8, *[0] * 15])}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_a_server_of_another_kind_is_no_scheduler(said, caplog):
    # Dask writes to the terminal by itself, without the logger of all.
    logging.getLogger("distributed.protocol.core").addHandler(caplog.handler)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer():
            client = server.accept()[0]
            client.sendall(said)
            return client

        answered = pool.submit(answer)
        with (
            pytest.raises(DemixError, match=rf"^No Dask scheduler answers at {address} \("),
            open_executor(f"dask:{address}", patience=1),
        ):
            pass
        answered.result().close()
    logging.getLogger("distributed.protocol.core").removeHandler(caplog.handler)
    assert not caplog.records
