"""The fuzzers of tests/fuzz, with more examples and new ones each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from faults.outcome import Outcome

ROOT = Path(__file__).resolve().parents[1]


def fuzz(examples: int) -> Outcome:
    """Give every reader so many spoilt files."""
    outcome = Outcome("spoilt, forged and random files", "all readers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/fuzz"],
        cwd=ROOT,
        env=os.environ | {"DEMIX_FUZZ": str(examples)},
        capture_output=True,
        text=True,
    )
    counted = subprocess.run(
        [sys.executable, "-m", "pytest", "--co", "-q", "tests/fuzz"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    outcome.tried = examples * counted.stdout.count("refused")
    for line in done.stdout.splitlines():
        outcome.expect(not line.startswith("FAILED"), line)
    outcome.expect(done.returncode == 0, f"the fuzzers ended with code {done.returncode}")
    return outcome
