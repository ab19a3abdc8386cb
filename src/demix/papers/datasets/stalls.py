"""Connections over which nothing of a file comes any more."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

_CHUNK = 2**16
# Of a body in chunks less is read at a time: nobody sees how a slow piece grows until it is whole.
_PIECE = 2**8


class Stalls:
    """Ends an answer that brings nothing of the file for so many seconds, as a broken connection.

    A timeout is for one read only. A server that says ``100 Continue`` again and again, or sends
    trailers without end, never lets it pass.
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

        with self._requests.Session() as session:
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
