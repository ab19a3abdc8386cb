"""Files are there as a whole or not at all, and whatever keeps them from it is told."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from demix._support.errors import DemixError
from demix._support.files import (
    FULL,
    check_regular,
    is_os_error,
    new_array,
    open_regular,
    remove_stale,
    write_atomic,
)
from demix._support.outputs import claim_file, claim_folder

# No process has a number like this.
NOBODY = 2**22 + 1


def torn(folder: Path, process: int, host: str = platform.node()) -> Path:
    """Leave behind what a process had half written when it was killed."""
    file = folder / f".demix-{host}-{process}-0123456789abcdef.tmp"
    file.write_bytes(b"half")
    return file


def test_the_old_file_goes_where_it_is_told_to(tmp_path):
    file, before = tmp_path / "a.txt", tmp_path / "before.txt"
    write_atomic(file, "one", before=before)
    assert not before.exists()
    write_atomic(file, "two", before=before)
    write_atomic(file, "three", before=before)
    assert (file.read_text(), before.read_text()) == ("three", "two")
    assert {found.name for found in tmp_path.iterdir()} == {"a.txt", "before.txt"}


@pytest.mark.parametrize("name", ["", ".", "/", "a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(DemixError, match="Expected the name of a file"):
        write_atomic(name, "text")


def test_an_array_is_whole_or_as_it_was(tmp_path):
    file = tmp_path / "a.npy"
    with new_array(file, (3, 2)) as array:
        array[:] = [[1, 2], [3, 4], [5, 6]]
        assert not file.exists()
    assert np.load(file).tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ZeroDivisionError), new_array(file, (3, 2)) as array:
        array[:] = 1 / 0
    assert np.load(file)[2, 1] == 6
    assert array.shape == (3, 2)
    assert [found.name for found in tmp_path.iterdir()] == ["a.npy"]


def test_nothing_but_a_plain_file_of_one_name_is_replaced(tmp_path):
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / "link").symlink_to(other)
    (tmp_path / "second").hardlink_to(other)
    os.mkfifo(tmp_path / "pipe")
    kinds = {"link": "a link", "second": "a file with a second name", "pipe": "a pipe"}
    before = sorted(tmp_path.iterdir())
    for name, kind in kinds.items():
        with pytest.raises(DemixError, match=f"free for a file of demix, but it is {kind}"):
            write_atomic(tmp_path / name, "new")
        with pytest.raises(DemixError, match=kind), new_array(tmp_path / name, (1, 1)):
            pass
    assert sorted(tmp_path.iterdir()) == before
    assert other.read_text() == "precious"


def test_an_array_of_no_rows_is_one(tmp_path):
    with new_array(tmp_path / "a.npy", (0, 2)):
        pass
    assert np.load(tmp_path / "a.npy").shape == (0, 2)


LIMITED = """
import resource, sys
from demix._support.files import new_array, write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    if sys.argv[1] == "array":
        with new_array("a", (1000, 3)) as array:
            raise AssertionError("it would end without a word when it is filled")
    else:
        write_atomic("a", bytes(2000))
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["array", "bytes"])
def test_no_room_is_told_before_a_map_is_filled(kind, tmp_path):
    (tmp_path / "a").write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, kind],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Cannot write a: File too large; make room or choose another")
    assert (tmp_path / "a").read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


def test_what_is_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(DemixError, match=r"Cannot write .*b: File exists; choose a folder"):
        write_atomic(tmp_path / "a" / "b", "text")


def test_trouble_of_the_system_is_told_from_bad_input(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(DemixError) as raised:
        write_atomic(tmp_path / "a" / "b", "text")
    assert is_os_error(raised.value)
    assert not is_os_error(raised.value, *FULL)
    assert not is_os_error(DemixError("bad input"))


def test_what_the_dead_left_is_removed_and_what_others_write_is_not(tmp_path):
    dead = torn(tmp_path, NOBODY)
    kept = [torn(tmp_path, os.getpid()), torn(tmp_path, NOBODY, "elsewhere")]
    kept += [tmp_path / ".hidden", tmp_path / "a.tmp"]
    for file in kept[2:]:
        file.write_text("precious")
    remove_stale(tmp_path)
    assert not dead.exists()
    assert all(file.exists() for file in kept)


def test_what_the_dead_left_beside_an_output_is_removed(tmp_path):
    dead, kept = torn(tmp_path, NOBODY), torn(tmp_path, os.getpid())
    with claim_file(tmp_path / "z.npy", "--out", suffix=".npy", start=b""):
        assert list(tmp_path.iterdir()) == [kept]
    assert not dead.exists()


def test_a_file_whose_writer_was_killed_between_two_names_is_replaced(tmp_path):
    file = write_atomic(tmp_path / "z.npy", b"old")
    second = torn(tmp_path, os.getpid())
    second.unlink()
    os.link(file, second)
    with pytest.raises(DemixError, match="a file with a second name"):
        write_atomic(file, b"new")  # its writer still runs
    second.rename(torn(tmp_path, NOBODY))
    with claim_file(file, "--out", suffix=".npy", start=b"old", overwrite=True):
        write_atomic(file, b"new")
    assert [place.read_bytes() for place in tmp_path.iterdir()] == [b"new"]


def test_a_folder_with_nothing_but_half_of_a_file_can_be_claimed(tmp_path):
    torn(tmp_path, NOBODY)
    assert claim_folder(tmp_path, "fit.json", command="demix fit") == tmp_path


MOUNTED = """
mkdir mounted && mount --bind real mounted && exec "$@"
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.call(["unshare", "-rm", "true"], stderr=-3) != 0,
    reason="this machine lets nobody mount",
)
def test_an_input_in_a_folder_with_two_names_is_known(tmp_path):
    place = tmp_path / "real" / "run"
    place.mkdir(parents=True)
    (place / "fit.json").touch()
    code = "from pathlib import Path\nfrom demix._support.outputs import claim_folder\n"
    code += "claim_folder('mounted/run', 'fit.json', inputs=[Path('real/run/fit.json')])\n"
    command = ["unshare", "-rm", "sh", "-ec", MOUNTED, "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "The output must not replace what is read" in done.stderr, done.stderr


def test_temporary_files_cannot_be_guessed_nor_led_elsewhere(tmp_path, monkeypatch):
    names = []
    for _ in range(2):
        with new_array(tmp_path / "a.npy", (1, 1)):
            names += [file.name for file in tmp_path.glob(".demix-*.tmp")]
    assert len(set(names)) == 2
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 16)
    place = tmp_path / f".demix-{platform.node()}-{os.getpid()}-{'0' * 16}.tmp"
    place.symlink_to(victim)
    with pytest.raises(DemixError, match=r"Cannot write .*: File exists|is a link"):
        write_atomic(tmp_path / "b", "text")
    assert victim.read_text() == "precious"


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    assert write_atomic(tmp_path / ("a" * 255), "text").read_text() == "text"
    with pytest.raises(DemixError, match="File name too long"):
        write_atomic(tmp_path / ("a" * 256), "text")


def test_bytes_of_names_that_are_no_letters_are_shown(tmp_path):
    assert write_atomic(tmp_path / "a", "data: \udcff").read_text() == "data: \\udcff"


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for check in (open_regular, check_regular):
        with pytest.raises(DemixError, match=r"pipe is a pipe; save what it gives to a file"):
            check(tmp_path / "pipe")
        with pytest.raises(DemixError, match="is a folder"):
            check(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel shows no files")
def test_files_of_the_kernel_are_refused_and_empty_ones_are_files(tmp_path):
    with pytest.raises(DemixError, match="status is a device of the kernel; save what it gives"):
        open_regular("/proc/self/status")
    (tmp_path / "empty").touch()
    with open_regular(tmp_path / "empty") as file:
        assert file.read() == b""


def test_a_host_may_have_any_name(tmp_path):
    code = "import os, pathlib, platform, sys\nplatform.node = lambda: 'a/b'\n"
    code += "from demix._support.files import remove_stale, write_atomic\n"
    code += "folder = pathlib.Path(sys.argv[1])\nremove_stale(folder)\nprint(os.listdir(folder))\n"
    code += "os.getpid, os.fsync = lambda: 2**22 + 1, lambda f: os._exit(0)\n"
    code += "sys.stdout.flush()\nwrite_atomic(folder / 'x', 'text')"  # and ends half-way
    command = [sys.executable, "-c", code, tmp_path]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
        [torn_file] = tmp_path.iterdir()
        assert torn_file.name.startswith(".demix-a_b-")


def test_links_that_look_like_temporary_files_are_left_alone(tmp_path):
    link = tmp_path / torn(tmp_path, NOBODY).name
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    remove_stale(tmp_path)
    assert link.is_symlink()


@pytest.mark.parametrize("before", [None, b"of before"])
def test_what_is_written_meanwhile_stays(tmp_path, before):
    place = tmp_path / "z.npy"
    if before is not None:
        place.write_bytes(before)

    def fill():
        with new_array(place, (3, 2)) as array:
            array[:] = 1
            place.write_bytes(b"of somebody else")

    with pytest.raises(DemixError, match="but it is a file that was written meanwhile"):
        fill()
    assert place.read_bytes() == b"of somebody else"
    assert [file.name for file in tmp_path.iterdir()] == ["z.npy"]


def test_what_comes_meanwhile_to_the_place_of_the_old_file_stays(tmp_path, monkeypatch):
    file, before = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"old")
    sync = os.fsync

    def fsync(opened):
        sync(opened)
        before.write_bytes(b"of somebody else")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DemixError, match=r"b to be free .* a file that was written meanwhile"):
        write_atomic(file, "new", before=before)
    assert file.read_bytes() == b"old"
    assert before.read_bytes() == b"of somebody else"


def test_what_another_container_writes_is_left_alone(tmp_path):
    """Its processes have other numbers, under the same name of a host; a lock tells of them."""
    from filelock import lock_descriptor

    file = torn(tmp_path, NOBODY)
    with file.open("r+b") as opened:
        assert lock_descriptor(opened.fileno(), blocking=False)
        remove_stale(tmp_path)
        assert file.exists()
    remove_stale(tmp_path)
    assert not file.exists()


def test_a_file_that_is_being_written_is_locked(tmp_path):
    with new_array(tmp_path / "a.npy", (2, 2)) as array:
        array[:] = 1
        [temporary] = tmp_path.iterdir()
        number = temporary.name.split("-")[-2]
        other = temporary.rename(temporary.with_name(temporary.name.replace(number, str(NOBODY))))
        remove_stale(tmp_path)
        other.rename(temporary)
