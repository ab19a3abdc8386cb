"""A real browser for tests that a written page draws what it should, without any network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

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


def dump_dom(path: str | Path, dark: bool = False, query: str = "") -> str:
    """HTML of the page after its scripts ran; fails if the page logged anything."""
    done = _run(path, "--dump-dom", *([DARK] if dark else []), query=query)
    logged = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert not logged, "the page logged:\n" + "\n".join(logged)
    return done.stdout


def screenshot(
    path: str | Path, png: str | Path, dark: bool = False, size: tuple[int, int] = (1280, 3600)
) -> Path:
    """Picture of the page in a window of the given width and height in pixels."""
    target = Path(png).resolve()
    flags = [f"--screenshot={target}", f"--window-size={size[0]},{size[1]}"]
    if dark:
        flags.append(DARK)
    _run(path, *flags)
    return target


def print_pdf(path: str | Path, pdf: str | Path, dark: bool = False) -> bytes:
    """The page as it goes to paper."""
    target = Path(pdf).resolve()
    _run(path, f"--print-to-pdf={target}", *([DARK] if dark else []))
    return target.read_bytes()


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
