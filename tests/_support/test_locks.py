"""Two runs into one folder: the second is told who has it, until the first is gone."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys

import pytest

from demix._support.errors import DemixError
from demix._support.files import LOCK
from demix._support.locks import lock_folder

HOLDER = """
import sys, time
from demix._support.locks import lock_folder
with lock_folder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_told_who_has_it_and_since_when(holder, tmp_path):
    with pytest.raises(DemixError) as raised, lock_folder(tmp_path):
        pass
    told = str(raised.value)
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d"
    who = rf"process {holder.pid} on {re.escape(platform.node())} since {moment} \(-c {tmp_path}\)"
    assert re.fullmatch(
        rf"{re.escape(str(tmp_path))} is in use by {who}; wait for it or choose another folder\.",
        told,
    )


def test_it_is_free_when_the_first_has_ended(holder, tmp_path):
    holder.communicate("\n")
    assert not any(tmp_path.iterdir())
    with lock_folder(tmp_path):
        assert (tmp_path / LOCK).exists()
    assert not any(tmp_path.iterdir())


def test_what_was_killed_holds_nothing(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / LOCK).exists()
    with lock_folder(tmp_path):
        pass
    assert not any(tmp_path.iterdir())


def test_an_error_lets_go(tmp_path):
    with pytest.raises(ZeroDivisionError), lock_folder(tmp_path):
        _ = 1 / 0
    with lock_folder(tmp_path):
        pass


def test_what_somebody_puts_in_its_place_stays(tmp_path):
    lock = tmp_path / LOCK
    with lock_folder(tmp_path):
        lock.unlink()
        lock.write_text("precious")
    assert lock.read_text() == "precious"


@pytest.mark.parametrize("words", [b"\xff no words", b"[" * 4096], ids=["bytes", "nested"])
def test_one_that_says_nothing_is_still_one(holder, tmp_path, words):
    (tmp_path / LOCK).write_bytes(words)
    with pytest.raises(DemixError, match="is in use by another process"), lock_folder(tmp_path):
        pass


RACE = """
import os, sys
from demix import DemixError
from demix._support.locks import lock_folder
won = 0
for _ in range(300):
    try:
        with lock_folder(sys.argv[1]):
            mark = os.path.join(sys.argv[1], "inside")
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if another one is inside
            os.unlink(mark)
            won += 1
    except DemixError:
        pass
print(won)
"""


def test_never_are_two_inside(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    won = [int(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert all(won)


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    if os.geteuid() == 0:
        place = "/proc/self"  # not even for root
    else:
        place = tmp_path
        tmp_path.chmod(0o500)
    with (
        pytest.raises(DemixError, match=r"Cannot write .*\.lock: .*; choose a folder"),
        lock_folder(place),
    ):
        pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "out"
    folder.mkdir()
    victim.write_text("precious")
    (folder / LOCK).symlink_to(victim)
    with pytest.raises(DemixError, match=r"\.lock .* is a link; remove it"), lock_folder(folder):
        pass
    assert victim.read_text() == "precious"
    assert (folder / LOCK).is_symlink()


def test_a_lock_that_is_a_second_name_of_a_file_leaves_it_alone(tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "out"
    folder.mkdir()
    victim.write_text("precious")
    (folder / LOCK).hardlink_to(victim)
    with pytest.raises(DemixError, match="a file with a second name"), lock_folder(folder):
        pass
    assert victim.read_text() == "precious"


def test_a_lock_of_another_program_is_left_alone(tmp_path):
    (tmp_path / LOCK).write_text("4711")
    with pytest.raises(DemixError, match="holds something else"), lock_folder(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text() == "4711"


def test_a_pipe_in_place_of_a_lock_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(DemixError, match="is a pipe"), lock_folder(tmp_path):
        pass
