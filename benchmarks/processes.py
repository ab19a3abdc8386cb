"""Processes of their own for measurements."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from demix._support.errors import DemixError

_ROOT = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Return the variable that lets processes find `benchmarks`, from whatever folder they start.

    They do not search the current folder, where somebody may have put modules.
    """
    return {"PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}


def run_module(name: str, task: str, *, what: str, remedy: str = "", **variables: str) -> str:
    """Run a module with one argument and return its output; raise if it fails, saying ``what``."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-m", name, task],
        capture_output=True,
        text=True,
        env=os.environ | environment() | variables,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DemixError(f"{what} failed: {reason}{remedy}.")
    return done.stdout
