"""Answers that go on for ever, or stumble, and bring nothing of the file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path

import pytest

from demix import DemixError
from demix.papers import fetch_dataset
from demix.papers.datasets import transfer
from file_server import FileServer

pytest.importorskip("requests", reason="the extra `papers` is not installed")
# Attempts that fail are warned of, and files without a checksum.
pytestmark = pytest.mark.filterwarnings("ignore::demix.DemixWarning")
NAME = "mpi3d_real.npz"  # of which neither length nor checksum is known
DATA = b"PK\x03\x04" + bytes(range(16))
MD5 = f"md5:{hashlib.md5(DATA).hexdigest()}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def server(empty_server, monkeypatch) -> FileServer:
    monkeypatch.setattr(transfer, "_STALL", 0.4)
    monkeypatch.setattr(transfer, "_ATTEMPTS", 2)
    empty_server.files[NAME] = DATA
    return empty_server


def ever(first: bytes, again: bytes) -> Callable[[BufferedIOBase], object]:
    """Return an answer of something, and then of something else again and again."""

    def answer(out: BufferedIOBase) -> None:
        out.write(first)
        while True:
            out.write(again)
            time.sleep(0.01)

    return answer


def refusal(server: FileServer, folder: Path) -> str:
    with pytest.raises(DemixError) as told:
        fetch_dataset("mpi3d_real", folder, source=server.address, checksum=MD5)
    assert "\n" not in str(told.value)
    return str(told.value)


STALLS = {
    "promises": ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a line of a header": ever(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "a size of a chunk": ever(CHUNKED, b"0"),
}


@pytest.mark.parametrize("answer", STALLS.values(), ids=STALLS)
def test_what_never_comes_to_the_file_is_left_after_some_attempts(server, tmp_path, answer):
    server.scripts = [answer] * 2
    assert "(the connection broke off); or fetch it by" in refusal(server, tmp_path)
    assert server.scripts == []
    assert list(tmp_path.iterdir()) == []


def test_what_came_before_endless_trailers_is_kept_and_the_rest_asked_for(server, tmp_path):
    server.scripts = [ever(CHUNKED + b"5\r\n" + DATA[:5] + b"\r\n0\r\n", b"a: b\r\n")]
    path = fetch_dataset("mpi3d_real", tmp_path, source=server.address, checksum=MD5)
    assert path.read_bytes() == DATA
    assert [asked.get("Range") for asked in server.asked] == [None, "bytes=5-"]


@pytest.mark.parametrize("chunked", [True, False], ids=["in chunks", "as a whole"])
def test_a_slow_body_that_moves_goes_on(server, tmp_path, chunked):
    def drip(out: BufferedIOBase) -> None:
        out.write(CHUNKED if chunked else b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
        for byte in DATA:
            out.write(b"1\r\n%c\r\n" % byte if chunked else bytes([byte]))
            time.sleep(0.04)
        out.write(b"0\r\n\r\n" if chunked else b"")

    server.scripts = [drip]
    path = fetch_dataset("mpi3d_real", tmp_path, source=server.address, checksum=MD5)
    assert path.read_bytes() == DATA
    assert len(server.asked) == 1


@pytest.mark.parametrize("size", [b"-5", b"x", b"", 5000 * b"f"])
def test_a_nonsensical_size_of_a_chunk_is_a_broken_connection(server, tmp_path, size):
    server.scripts = [lambda out: out.write(CHUNKED + size + b"\r\nhello\r\n0\r\n\r\n")] * 2
    assert "(the connection broke off); or fetch it by" in refusal(server, tmp_path)
    assert list(tmp_path.iterdir()) == []
