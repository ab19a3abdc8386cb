"""A server of files on this machine that breaks off as often as it is told to."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        server = self.server
        server.asked.append(dict(self.headers))
        if server.scripts:
            with suppress(OSError):  # nobody listens any more
                server.scripts.pop(0)(self.wfile)
            self.close_connection = True
            return
        data = server.files.get(self.path.lstrip("/"))
        if data is None:
            self.send_error(404)
            return
        first, tag = 0, f'"{hashlib.md5(data).hexdigest()}"'
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range", tag) == tag
        if asked and same and server.ranges:
            first = int(asked[1])
            if first >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - first))
        self.send_header("ETag", tag)
        self.end_headers()
        most = server.breaks.pop(0) if server.breaks else len(data)
        last = min(first + most, len(data))
        step = max(1, len(data) // 20) if server.pause else len(data)
        with suppress(OSError):  # nobody listens any more
            for start in range(first, last, step):
                self.wfile.write(data[start : min(start + step, last)])
                time.sleep(server.pause)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class FileServer(ThreadingHTTPServer):
    """Serves files with ranges.

    Attributes
    ----------
    files : dict of str to bytes
        What there is.
    breaks : list of int
        Each entry ends one answer after so many bytes.
    scripts : list of callable
        Each entry answers one request in its own way: it is given where to write.
    ranges : bool
        Whether it can begin in the middle.
    pause : float
        Seconds between the twentieths of a file.
    asked : list of dict
        The headers of all requests.
    address : str
        Where it is.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.breaks: list[int] = []
        self.scripts: list[Callable[[BufferedIOBase], object]] = []
        self.asked: list[dict[str, str]] = []
        self.ranges, self.pause = True, 0.0
        self.address = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> FileServer:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
