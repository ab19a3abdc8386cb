"""One file over HTTP: it is resumed where it broke off, and no answer of a server is trusted."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from demix._support.errors import reason, shortened, warn
from demix._support.files import check_free, open_own, write_atomic
from demix.papers.datasets.factor_images import Progress

# Seconds until a connection is there, and until its next byte is: a silent server is left soon. One
# that goes on slowly is not, as a large file may take a day.
_TIMEOUT = 30.0
# Seconds after which an answer that goes on, but brings nothing of the file, is left, too.
_STALL = 60.0
# Attempts in a row that bring nothing, and the pause after the first of them, in seconds.
_ATTEMPTS, _PAUSE = 3, 0.5
# Bytes: more than any official file has, and what stays free on the disk.
_MOST, _SPARE = 32 * 10**9, 100 * 10**6
# Lengths of up to 18 digits: Python refuses to read numbers of thousands.
_LENGTH = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18})")


class BrokenAnswer(Exception):
    """An answer that cannot be right, in words for the inside of a sentence; not tried again."""


class Part:
    """What has come of a file so far, and in a second file the server's tag of that version.

    No browser or other program gives such names to what it has begun.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._tag = path, path.with_name(f"{path.name}.tag")

    @property
    def beside(self) -> Part:
        """Where the file goes if it comes from its beginning though there is a part of it."""
        return Part(self.path.with_suffix(".demix-part-new"))

    @property
    def size(self) -> int:
        """How many bytes have come; what is no file of ours is refused."""
        return _size(self.path)

    @property
    def tag(self) -> str:
        """What the server called the version that has come; empty if that is not known."""
        if not _size(self._tag):
            return ""
        with _opened(self._tag) as file:
            return file.read(2**16).decode("latin-1")

    @tag.setter
    def tag(self, text: str) -> None:
        write_atomic(self._tag, text.encode("latin-1") if text.isprintable() else b"")

    def open(self, flags: int = 0) -> BinaryIO:
        """Open the bytes that have come, to read and to write."""
        return _opened(self.path, flags)

    def remove(self) -> None:
        """Remove both files."""
        self.path.unlink(missing_ok=True)
        self._tag.unlink(missing_ok=True)

    def settle(self) -> None:
        """Keep the longer one of a part and of what came beside it, unless it is empty."""
        new = self.beside
        for file in (self.path, self._tag, new.path, new._tag):
            check_free(file)  # all of them, before any is removed
        if os.path.lexists(new.path) and new.size >= self.size:
            # In this order, a kill never leaves a part with the tag of another one.
            self.path.unlink(missing_ok=True)
            if new._tag.exists():
                new._tag.replace(self._tag)
            new.path.replace(self.path)
        new.remove()
        if not self.size:
            self.remove()


def _opened(path: Path, flags: int = 0) -> BinaryIO:
    return os.fdopen(open_own(path, flags), "r+b")


def _size(path: Path) -> int:
    if not os.path.lexists(path):
        return 0
    with _opened(path) as file:
        return os.fstat(file.fileno()).st_size


@dataclass
class Transfer:
    """A file at an address, the part of it that has come, and its size if that is known.

    ``checked`` says whether a checksum is known: without one, the server must say the length.
    """

    url: str
    part: Part
    size: int | None
    checked: bool
    callback: Progress
    requests: Any

    def run(self) -> int | None:
        """Attempt after attempt, as long as they bring something; return the length, if known."""
        vain = 0
        while True:
            before = self.part.size
            try:
                return self._attempt()
            except self.requests.HTTPError:
                raise
            except self.requests.RequestException as error:
                vain = 0 if self.part.size > before else vain + 1
                if vain == _ATTEMPTS:
                    raise
                where = f"at byte {self.part.size} of {self.url}"
                warn(f"{failure(error).capitalize()} {where}; it is tried again.")
                time.sleep(_PAUSE * vain)

    def _attempt(self) -> int | None:
        """Ask for what is missing, and append it."""
        have = self.part.size
        if self.size is not None and have >= self.size:
            if have > self.size:
                raise self._too_short()
            return self.size
        with Stalls(_STALL, self.requests) as stalls, self._ask(stalls, have) as answer:
            if answer.status_code == 416 and have:  # there is nothing after what we have
                if self.size is None and answer.headers.get("Content-Range") == f"bytes */{have}":
                    return have
                raise self._too_short()
            answer.raise_for_status()
            first, total = self._announced(answer, have)
            # What came before stays until more than it has come.
            target = self.part if first == have else self.part.beside
            _check_room(target.path.parent, (total or first) - first)
            target.tag = _version(answer.headers)
            try:
                done = self._receive(stalls.pieces(answer), target, first, total)
            finally:
                self.part.settle()
        if total is not None and done < total:
            raise self.requests.ConnectionError(f"it ended after {done} of {total} bytes")
        if done < have:
            raise self._too_short()
        if not done:
            raise BrokenAnswer("the server sends nothing")
        return total

    def _ask(self, stalls: Stalls, have: int) -> Any:
        # Bytes as they are: a compressed body cannot be counted.
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if tag := self.part.tag:
                headers["If-Range"] = tag  # a file that was changed comes from its beginning
        options = {"stream": True, "timeout": _TIMEOUT, "hooks": {"response": _skip}}
        try:
            return stalls.get(self.url, headers=headers, **options)
        except ValueError as error:  # an address or a header that the library cannot use
            raise BrokenAnswer(reason(error)) from error

    def _announced(self, answer: Any, have: int) -> tuple[int, int | None]:
        """Return where an answer begins, and how long the file is if known; refuse a wrong one."""
        if answer.status_code not in (200, 206):
            raise BrokenAnswer(_status(answer))
        packed = answer.headers.get("Content-Encoding", "")
        if packed.lower() not in ("", "identity"):
            raise BrokenAnswer(f"the server sends it as {shortened(packed)!r}, not as it is")
        length = answer.headers.get("Content-Length")
        if length is not None and not _LENGTH.fullmatch(length.strip()):
            raise BrokenAnswer(f"the server gives its length as {shortened(length)!r}")
        first, total = 0, None if length is None else int(length)
        if answer.status_code == 206:
            place = answer.headers.get("Content-Range", "")
            found = _RANGE.fullmatch(place)
            if found is None or int(found[1]) != have:
                sent = shortened(place)
                raise BrokenAnswer(f"asked for what follows byte {have}, it sends {sent!r}")
            first, total = have, int(found[2])
        if total is None:
            if self.size is None and not self.checked:
                raise BrokenAnswer(
                    "the server does not say how long it is, and no checksum is known"
                )
            return first, self.size
        if total != self.size if self.size is not None else total > _MOST:
            expected = self.size or f"at most {_MOST}"
            raise BrokenAnswer(f"the server has {total} bytes, but expected {expected}")
        if total < have:
            raise self._too_short()
        return first, total

    def _receive(self, pieces: Iterator[bytes], target: Part, first: int, total: int | None) -> int:
        """Write a body into a part from byte ``first`` on, and return where it ended."""
        most, done = total or _MOST, first
        with target.open(0 if first else os.O_CREAT | os.O_EXCL) as file:
            file.seek(first)
            for piece in pieces:
                done += len(piece)
                if done > most:
                    file.truncate(first)  # none of this can be trusted
                    raise BrokenAnswer(f"the server sends more than {most} bytes")
                _check_room(target.path.parent, len(piece))
                file.write(piece)
                self.callback(done, total or done, target.path.stem)
        return done

    def _too_short(self) -> BrokenAnswer:
        name = self.part.path.name
        return BrokenAnswer(
            f"the file has fewer than the {self.part.size} bytes of {name}; if that is so, remove "
            f"{name}"
        )


def failure(error: Exception) -> str:
    """Return in few words what went wrong; the library's own tell of its objects."""
    if isinstance(error, BrokenAnswer):
        return str(error)
    answer = getattr(error, "response", None)
    if answer is not None:
        return _status(answer)
    return "no answer" if "Max retries" in str(error) else "the connection broke off"


def _status(answer: Any) -> str:
    return f"the server says {shortened(f'{answer.status_code} {answer.reason}')}".strip()


def _skip(answer: Any, **_: Any) -> None:
    """Close a redirection; the library would read all of it into memory, even if it never ends."""
    if answer.is_redirect:
        answer.close()


def _version(headers: Any) -> str:
    """Return what the server calls this version of the file; nothing if it says nothing usable."""
    tag = str(headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified", ""))


def _check_room(folder: Path, more: int) -> None:
    if shutil.disk_usage(folder).free - more < _SPARE:
        raise OSError(
            errno.ENOSPC,
            f"less than {_SPARE // 10**6} MB of the disk would stay free; make room, and the same "
            "call goes on after what came",
        )


_CHUNK = 2**16
# Of a body in chunks less is read at a time: nobody sees how a slow piece grows until it is whole.
_PIECE = 2**8


class Stalls:
    """Ends an answer that brings nothing of the file for so many seconds, as a broken connection.

    A timeout is for one read only: ``100 Continue`` again and again never lets it pass.
    """

    def __init__(self, seconds: float, requests: Any) -> None:
        self._seconds, self._requests = seconds, requests
        self._until = time.monotonic() + seconds
        self._sockets: list[Any] = []
        self._stalled, self._over = False, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def get(self, url: str, **options: Any) -> Any:
        """Do what ``requests.get`` does."""
        sockets = self._sockets

        class Adapter(self._requests.adapters.HTTPAdapter):  # type: ignore[name-defined]
            def cert_verify(self, conn: Any, *rest: Any) -> None:
                """Take note of connections; only here the library shows where they come from."""
                super().cert_verify(conn, *rest)

                class Connection(conn.ConnectionCls):
                    def connect(self) -> None:
                        super().connect()
                        sockets.append(self.sock)

                conn.ConnectionCls = Connection

        class Session(self._requests.Session):  # type: ignore[name-defined]
            def rebuild_auth(self, *_: Any) -> None:
                """Take no password from a .netrc, which may be a pipe, for another host either."""

        with Session() as session:
            session.auth = lambda request: request
            for kind in ("http://", "https://"):
                session.mount(kind, Adapter())
            answer = session.get(url, **options)
        if self._stalled:  # what was cut off may still look like an answer
            answer.close()
            raise self._broken()
        return answer

    def pieces(self, answer: Any) -> Iterator[bytes]:
        """Yield the body of an answer; whatever goes wrong meanwhile is a broken connection."""
        # Of a body that is not in chunks each byte is one of the file, and the timeout enough.
        # `read1` returns what there is: a connection that breaks off soon brings something, too.
        seconds = self._seconds if answer.raw.chunked else math.inf
        whole = iter(lambda: answer.raw.read1(_CHUNK), b"")
        try:
            self._until = time.monotonic() + seconds
            for piece in answer.iter_content(_PIECE) if answer.raw.chunked else whole:
                yield piece
                self._until = time.monotonic() + seconds
        except self._requests.RequestException:
            raise
        except Exception as error:
            raise self._requests.ConnectionError(str(error)) from error
        if self._stalled:  # to the library, it has ended
            raise self._broken()

    def _broken(self) -> Any:
        return self._requests.ConnectionError(f"nothing came for {self._seconds} s")

    def _watch(self) -> None:
        while not self._over.wait(self._seconds / 60):
            if time.monotonic() > self._until:
                self._stalled = True
                for used in self._sockets:
                    # By another name: a closed one of TLS would be read on as if it were plain.
                    with (
                        suppress(OSError, ValueError),
                        socket.fromfd(used.fileno(), socket.AF_INET, socket.SOCK_STREAM) as twin,
                    ):
                        twin.shutdown(socket.SHUT_RDWR)
