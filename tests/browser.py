"""A real browser for tests that a written page draws what it should, without any network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # No name resolves. What a page asks for from outside is refused, and logged, by its own policy.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
)


DARK = "--blink-settings=preferredColorScheme=0"


def dump_dom(
    path: str | Path, dark: bool = False, query: str = "", more: Sequence[str] = ()
) -> str:
    """HTML of the page after its scripts ran; fails if the page logged anything."""
    done = _run(path, "--dump-dom", *more, *([DARK] if dark else []), query=query)
    logged = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert not logged, "the page logged:\n" + "\n".join(logged)
    return done.stdout


class Seen(NamedTuple):
    """What a browser makes of a page: its HTML, a picture of it, and paper if asked for."""

    dom: str
    picture: Path
    paper: bytes


def see(path: Path, *, dark: bool = False, paper: bool = False, size: str = "1280,3300") -> Seen:
    """HTML and picture of a page, and files beside it; fails if the page logged anything."""
    # All from one start of the browser, which takes longer than any of them.
    picture, pdf = path.with_suffix(".png").resolve(), path.with_suffix(".pdf").resolve()
    flags = [f"--screenshot={picture}", f"--window-size={size}"]
    flags += [f"--print-to-pdf={pdf}"] if paper else []
    dom = dump_dom(path, dark, more=flags)
    return Seen(dom, picture, pdf.read_bytes() if paper else b"")


def _run(path: str | Path, *flags: str, query: str = "") -> subprocess.CompletedProcess[str]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not on PATH, so no page can be opened")
    # A fresh profile each time: nothing remembered, and parallel tests do not share a lock.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [chromium, *FLAGS, f"--user-data-dir={profile}", *flags]
        return subprocess.run(
            [*command, Path(path).resolve().as_uri() + query],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=True,
        )
