"""Downloads from servers that lie or never end, into folders where somebody set traps."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path

import numpy as np
import pytest

from alarm import within
from demix import DemixError, DemixWarning
from demix.papers import fetch_dataset
from demix.papers.datasets import transfer
from demix.papers.datasets.download import OFFICIAL, OfficialFile
from file_server import FileServer

pytest.importorskip("requests", reason="the extra `papers` is not installed")
# Attempts that fail are warned of, and files without a checksum.
pytestmark = pytest.mark.filterwarnings("ignore::demix.DemixWarning")
NAME = "mpi3d_real.npz"  # of which neither length nor checksum is known
CHUNK = 2**16
ZIP = b"PK\x03\x04"
DATA = ZIP + np.random.default_rng(0).bytes(20 * CHUNK - 4)
PART = DATA[: 5 * CHUNK]
OTHER = ZIP + DATA[:3:-1]
MD5 = "md5:00000000000000000000000000000000"


@pytest.fixture
def server(empty_server) -> FileServer:
    empty_server.files[NAME] = DATA
    return empty_server


@pytest.fixture
def part(tmp_path) -> Path:
    path = tmp_path / f"{NAME}.demix-part"
    path.write_bytes(PART)
    (tmp_path / f"{NAME}.demix-part.tag").touch()
    return path


@pytest.mark.parametrize("suffix", [".part", ".part-new", ".part.tag", ".tag"])
def test_a_part_of_another_program_is_left_alone(server, tmp_path, suffix):
    notes = tmp_path / f"{NAME}{suffix}"
    notes.write_text("my notes")
    assert fetch_dataset("mpi3d_real", tmp_path, source=server.address).read_bytes() == DATA
    assert notes.read_text() == "my notes"


@pytest.fixture
def known(monkeypatch) -> None:
    """Let the length of the file be known."""
    file = OfficialFile(NAME, "http://127.0.0.1:9", size=len(DATA))
    monkeypatch.setitem(OFFICIAL, "mpi3d_real", (file,))


def says(status: str, *headers: str, body: bytes = b"") -> Callable[[BufferedIOBase], object]:
    """Return an answer that says this, and then all of ``body``."""
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, ""))
    return lambda out: out.write(head.encode() + body)


def endless(*headers: str) -> Callable[[BufferedIOBase], object]:
    """Return an answer of more bytes than a test waits for; not quite endless, for its sake."""

    def answer(out: BufferedIOBase) -> None:
        says(*headers)(out)
        for _ in range(2000):
            out.write(b"10000\r\n" + bytes(CHUNK) + b"\r\n")

    return answer


def refusal(server: FileServer, folder: Path, **options: str) -> str:
    with pytest.raises(DemixError) as told:
        fetch_dataset("mpi3d_real", folder, **{"source": server.address, **options})
    assert "\n" not in str(told.value)
    return str(told.value)


def goes_on(server: FileServer, part: Path) -> None:
    """Assert that nothing was lost: the next call fetches only what is missing."""
    assert part.read_bytes() == PART
    assert [path.name for path in part.parent.iterdir() if path.suffix != ".tag"] == [part.name]
    server.asked.clear()
    server.scripts.clear()
    server.breaks, server.ranges = [], True
    path = fetch_dataset("mpi3d_real", part.parent, source=server.address)
    assert path.read_bytes() == DATA
    assert [asked["Range"] for asked in server.asked] == [f"bytes={len(PART)}-"]
    assert [file.name for file in path.parent.iterdir()] == [NAME]


PORTALS = {
    "with a length": says("200 OK", "Content-Length: 5", body=b"login"),
    "without a length": says("200 OK", body=b"login"),
    "without a body": says("204 No Content"),
    "of nothing": says("200 OK", "Content-Length: 0"),
    "with a range": says("206 Partial", "Content-Range: bytes 0-4/5", body=b"login"),
    "that says there is no more": says("416 No", "Content-Range: bytes */5"),
}


@pytest.mark.parametrize("answer", PORTALS.values(), ids=PORTALS)
@pytest.mark.parametrize("length", ["known", "unknown"])
def test_a_portal_costs_nothing_of_what_came(server, part, length, answer, request):
    if length == "known":
        request.getfixturevalue("known")
    server.scripts = [answer] * 3
    assert "what came is kept" in refusal(server, part.parent)
    goes_on(server, part)


def test_a_range_that_was_not_asked_for_is_told(server, tmp_path):
    server.scripts = [says("416 No", "Content-Range: bytes */0")]
    assert "(the server says 416 No); or fetch it" in refusal(server, tmp_path)


def test_a_file_that_appears_meanwhile_is_left_alone(server, tmp_path, monkeypatch):
    # Whatever was seen of it a moment before.
    seen = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: seen(path) and path != tmp_path / NAME)

    def answer(out: BufferedIOBase) -> None:
        (tmp_path / NAME).write_text("of the user")
        says("200 OK", f"Content-Length: {len(DATA)}", body=DATA)(out)

    server.scripts = [answer]
    assert "written meanwhile" in refusal(server, tmp_path)
    assert (tmp_path / NAME).read_text() == "of the user"


def test_another_length_than_the_known_one_is_refused_at_once(server, part, known):
    server.files[NAME] = DATA + b"!"
    line = refusal(server, part.parent)
    assert f"the server has {len(DATA) + 1} bytes, but expected {len(DATA)}" in line
    server.files[NAME] = DATA
    goes_on(server, part)


def test_a_part_that_is_longer_than_the_file_is_left_to_its_owner(server, part):
    server.files[NAME] = PART[:-1]
    assert f"fewer than the {len(PART)} bytes of {part.name}" in refusal(server, part.parent)
    server.files[NAME] = DATA
    goes_on(server, part)


def test_a_part_that_is_whole_by_the_known_length_needs_no_network(tmp_path, known):
    (tmp_path / f"{NAME}.demix-part").write_bytes(DATA)
    (tmp_path / f"{NAME}.demix-part.tag").touch()
    assert fetch_dataset("mpi3d_real", tmp_path).read_bytes() == DATA


def test_a_beginning_replaces_a_part_only_once_it_is_longer(server, part):
    server.ranges, server.breaks = False, [2 * CHUNK] * 3
    assert "broke off); what came is kept" in refusal(server, part.parent)
    assert part.read_bytes() == PART
    server.files[NAME], server.breaks = OTHER, [7 * CHUNK, *[2 * CHUNK] * 3]
    refusal(server, part.parent)
    assert part.read_bytes() == OTHER[: 7 * CHUNK]
    server.ranges = True
    path = fetch_dataset("mpi3d_real", part.parent, source=server.address)
    assert path.read_bytes() == OTHER
    assert server.asked[-1]["If-Range"]  # the tag came along
    assert [file.name for file in path.parent.iterdir()] == [NAME]


def test_what_a_killed_call_left_beside_a_part_is_used_if_it_is_longer(server, part):
    beside = part.with_name(f"{NAME}.demix-part-new")
    beside.write_bytes(DATA[: 3 * CHUNK])
    tag = beside.with_name(f"{beside.name}.tag")
    tag.write_text('"of another version"')
    server.scripts = [says("503 Busy")]
    assert "503 Busy); what came is kept" in refusal(server, part.parent)
    assert part.read_bytes() == PART
    names = sorted(file.name for file in part.parent.iterdir())
    assert names == [part.name, f"{part.name}.tag"]
    beside.write_bytes(DATA[: 6 * CHUNK])
    tag.write_text('"of this version"')
    server.scripts = [says("503 Busy")]
    refusal(server, part.parent)
    assert part.read_bytes() == DATA[: 6 * CHUNK]
    assert part.with_name(f"{part.name}.tag").read_text() == '"of this version"'


LENGTHS = {
    "a word": ("200 OK", "Content-Length: five"),
    "negative": ("200 OK", "Content-Length: -5"),
    "two": ("200 OK", "Content-Length: 5, 5"),
    "thousands of digits": ("200 OK", f"Content-Length: {'9' * 5000}"),
    "beyond all files": ("200 OK", "Content-Length: 999999999999999"),
    "a word in a range": ("206 Partial", f"Content-Range: bytes {len(PART)}-x/y"),
    "negative in a range": ("206 Partial", f"Content-Range: bytes {len(PART)}-9/-9"),
    "another range": ("206 Partial", "Content-Range: bytes 7-11/12"),
    "no range": ("206 Partial", "Content-Length: 5"),
    "a range with a negative length": (
        "206 Partial", f"Content-Range: bytes {len(PART)}-{len(DATA) - 1}/{len(DATA)}",
        "Content-Length: -5",
    ),
    "of other bytes": ("200 OK", f"Content-Length: {len(DATA)}", "Content-Encoding: gzip"),
}  # fmt: skip


@pytest.mark.parametrize("head", LENGTHS.values(), ids=LENGTHS)
def test_a_length_that_is_none_is_a_broken_answer(server, part, head):
    server.scripts = [says(*head, body=b"login")] * 3
    line = refusal(server, part.parent, checksum=MD5)
    assert "checksum" not in line
    assert "what came is kept" in line
    goes_on(server, part)


@pytest.mark.parametrize("begun", [False, True], ids=["at first", "resumed"])
@pytest.mark.parametrize("length", ["known", "announced", "unknown"])
def test_a_stream_without_an_end_is_capped(server, part, monkeypatch, request, begun, length):
    if not begun:
        part.unlink()
    if length == "known":
        request.getfixturevalue("known")
    first = len(PART) if begun else 0
    ranged = ["206 Partial", f"Content-Range: bytes {first}-{len(DATA) - 1}/{len(DATA)}"]
    head = ranged if length == "announced" else ["200 OK"]
    monkeypatch.setattr(transfer, "_MOST", len(DATA))
    server.scripts = [endless(*head, "Transfer-Encoding: chunked")]
    assert f"sends more than {len(DATA)} bytes" in refusal(server, part.parent, checksum=MD5)
    if begun:
        goes_on(server, part)
    assert begun or not any(part.parent.iterdir())  # none of it can be right


def test_the_disk_is_not_filled(server, part, monkeypatch):
    monkeypatch.setattr(transfer, "_SPARE", 10**18)
    for answers in ([], [says("200 OK", body=DATA)]):  # with and without a length
        server.scripts = answers
        assert "would stay free; make room" in refusal(server, part.parent, checksum=MD5)
        assert part.read_bytes() == PART
    monkeypatch.undo()
    goes_on(server, part)


@pytest.mark.parametrize("end", ["", ".tag", "-new", "-new.tag"])
@pytest.mark.parametrize("trap", ["link", "dangling link", "second name", "pipe"])
@pytest.mark.parametrize("begun", [False, True], ids=["at first", "resumed"])
def test_no_trap_is_stepped_into(server, tmp_path, end, trap, begun):
    folder, victim = tmp_path / "in", tmp_path / "victim"
    folder.mkdir()
    if begun:
        (folder / f"{NAME}.demix-part").write_bytes(PART)
        (folder / f"{NAME}.demix-part.tag").touch()
        server.ranges = False
    planted = folder / f"{NAME}.demix-part{end}"
    planted.unlink(missing_ok=True)
    if trap == "pipe":
        os.mkfifo(planted)
    elif trap == "second name":
        victim.write_bytes(b"of somebody")
        planted.hardlink_to(victim)
    else:
        if trap == "link":
            victim.write_bytes(b"of somebody")
        planted.symlink_to(victim)
    there, before = victim.exists(), sorted(folder.iterdir())
    line = refusal(server, folder)
    assert re.search("it is (a link|a pipe|a file with a second name); remove it", line)
    assert sorted(folder.iterdir()) == before
    assert victim.exists() == there
    assert not there or victim.read_bytes() == b"of somebody"


def test_what_is_refused_removes_no_tag(server, tmp_path):
    (tmp_path / f"{NAME}.demix-part").symlink_to("nowhere")
    notes = tmp_path / f"{NAME}.demix-part-new.tag"
    notes.write_text("my notes")
    assert "it is a link; remove it" in refusal(server, tmp_path)
    assert notes.read_text() == "my notes"


def test_a_folder_of_an_old_name_is_not_followed(server, tmp_path):
    folder, victim = tmp_path / "in", tmp_path / "victim"
    folder.mkdir()
    victim.mkdir()
    (folder / f".{NAME}.aside").symlink_to(victim)
    assert fetch_dataset("mpi3d_real", folder, source=server.address).read_bytes() == DATA
    assert not any(victim.iterdir())


@pytest.mark.parametrize("checksum", [{}, {"checksum": MD5}], ids=["unchecked", "checked"])
def test_what_is_in_the_place_of_the_file_must_be_a_file(server, tmp_path, checksum):
    target = tmp_path / NAME
    os.mkfifo(target)
    assert f"{target} is a pipe" in refusal(server, tmp_path, **checksum)
    target.unlink()
    target.mkdir()
    assert f"{target} is a folder" in refusal(server, tmp_path, **checksum)
    target.rmdir()
    target.symlink_to(tmp_path / "nowhere")
    assert f"Cannot read {target}" in refusal(server, tmp_path, **checksum)
    assert not server.asked


def test_a_wrong_checksum_removes_only_what_has_its_full_length(server, part):
    server.scripts = [says("200 OK", body=DATA[: 6 * CHUNK])]
    line = refusal(server, part.parent, checksum=MD5)
    assert f"another checksum than {MD5} and is kept" in line
    assert part.read_bytes() == DATA[: 6 * CHUNK]
    assert "and was removed" in refusal(server, part.parent, checksum=MD5)
    assert not any(part.parent.iterdir())


@pytest.mark.parametrize("source", ["ftp://x", "file:///etc", "data", "", "http://", "//x"])
def test_a_mirror_has_an_http_address(tmp_path, source):
    with pytest.raises(DemixError, match=r"begins with http:// or https://, but got"):
        fetch_dataset("mpi3d_real", tmp_path, source=source)


@pytest.mark.parametrize("source", [f"http://{'a' * 64}.org", "http://[", "http://x:y"])
def test_an_address_that_cannot_be_is_told_in_a_sentence(server, part, source):
    assert "Cannot fetch" in refusal(server, part.parent, source=source)
    goes_on(server, part)


def test_redirections_lead_to_http_only(server, part):
    server.scripts = [says("302 Found", f"Location: {part.as_uri()}")]
    assert "No connection adapters were found for 'file:" in refusal(server, part.parent)
    server.scripts = [says("302 Found", f"Location: /{NAME}")] * 99
    assert "the server says 302 Found" in refusal(server, part.parent)
    goes_on(server, part)


def test_a_pipe_with_passwords_is_not_read(server, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "netrc")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.scripts = [says("302 Found", f"Location: /{NAME}")]
    with within(30):
        path = fetch_dataset("mpi3d_real", tmp_path / "data", source=server.address)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("coding", [[], ["Transfer-Encoding: chunked"]], ids=["plain", "chunked"])
def test_what_a_redirection_says_is_not_read(server, tmp_path, coding):
    ended = []

    def talk(out: BufferedIOBase) -> None:
        endless("302 Found", f"Location: /{NAME}", *coding)(out)
        ended.append(True)

    server.scripts = [talk]
    assert fetch_dataset("mpi3d_real", tmp_path, source=server.address).read_bytes() == DATA
    assert not ended


@pytest.mark.parametrize("said", ["", "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nx"])
def test_a_server_that_falls_silent_is_left_after_three_attempts(server, part, monkeypatch, said):
    def silent(out: BufferedIOBase) -> None:
        out.write(said.encode())
        time.sleep(2)

    monkeypatch.setattr(transfer, "_TIMEOUT", 0.2)
    server.scripts = [silent] * 9
    start = time.monotonic()
    assert "what came is kept" in refusal(server, part.parent)
    assert time.monotonic() - start < 10
    assert len(server.asked) == 3
    goes_on(server, part)


def test_what_nothing_is_known_of_is_not_taken_silently(server, tmp_path):
    with pytest.warns(DemixWarning, match=r"nothing but its length was checked; give one"):
        fetch_dataset("mpi3d_real", tmp_path / "warned", source=server.address)
    server.scripts = [says("200 OK", body=DATA)]
    line = refusal(server, tmp_path / "unknown")
    assert "does not say how long it is, and no checksum is known" in line
    server.files[NAME] = b"<html>login</html>"
    assert "is no zip archive and was removed" in refusal(server, tmp_path / "portal")
    assert not (tmp_path / "portal").exists()
    with pytest.warns(DemixWarning, match=r"nothing but its length was checked; give one"):
        fetch_dataset("mpi3d_real", tmp_path / "warned")
    (tmp_path / "warned" / NAME).write_bytes(b"abc")
    line = refusal(server, tmp_path / "warned")
    assert "Expected a zip archive" in line
    assert (tmp_path / "warned" / NAME).read_bytes() == b"abc"


def test_a_line_that_breaks_off_soon_gets_on_and_says_so(server, tmp_path):
    server.breaks = [100] * 5
    with pytest.warns(DemixWarning, match="The connection broke off at byte .00 of") as told:
        path = fetch_dataset("mpi3d_real", tmp_path, source=server.address)
    assert path.read_bytes() == DATA
    assert [asked.get("Range") for asked in server.asked][1:] == [
        f"bytes={100 * number}-" for number in range(1, 6)
    ]
    assert len(told) == 6  # the last one is about the checksum
