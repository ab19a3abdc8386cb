"""The real `demix` command for tests, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

# Whatever makes rich and typer draw differently than into a plain file.
DRAWING = {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


def start_demix(*arguments: object, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start `demix` with pipes for its output, on one thread."""
    kept = {name: value for name, value in os.environ.items() if name not in DRAWING}
    return subprocess.Popen(
        [sys.executable, "-m", "demix", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        env=kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )


def run_demix(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `demix` to its end."""
    with start_demix(*arguments) as process:
        try:
            out, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def refusal(*arguments: object) -> str:
    """Run `demix` on bad input and return its one sentence; anything else fails."""
    done = run_demix(*arguments)
    assert done.returncode == 2, done
    assert done.stdout.strip() == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith(".")
    return lines[0]
