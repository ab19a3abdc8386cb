"""Peak extra memory of a call, in a fresh process."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.processes import run_module

# Fixed thresholds hand freed memory back at once, so that what the preparation has freed cannot
# serve the call unseen.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def extra_memory(
    prepare: Callable[..., Any], arguments: dict[str, Any], tiny: dict[str, Any]
) -> int:
    """Return the bytes by which a call raises the memory of a process of its own, at its peak.

    Parameters
    ----------
    prepare : callable
        A function of a module: ``prepare(**arguments)`` allocates the inputs and returns the call.
    arguments : dict
        Its arguments, as JSON can hold them.
    tiny : dict
        Arguments of a small call that goes first: it loads libraries and starts threads.

    Returns
    -------
    int
        Peak less what was there just before the call; inputs and libraries do not count.
    """
    task = json.dumps([prepare.__module__, prepare.__name__, arguments, tiny])
    what = f"Measuring the memory of {prepare.__name__} with {arguments}"
    remedy = "; free some memory and try again"
    return int(run_module("benchmarks.memory", task, what=what, remedy=remedy, **MALLOC))


def _measure(task: str) -> int:
    module, name, arguments, tiny = json.loads(task)
    prepare = getattr(import_module(module), name)
    prepare(**tiny)()
    call = prepare(**arguments)
    gc.collect()
    before = start_counting()
    call()
    return max(0, peak_memory() - before)


def start_counting() -> int:
    """Return the bytes in use now, and count the peak from here where the system lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return _status("VmRSS")
    except OSError:
        return _highest()


def peak_memory() -> int:
    """Return the most bytes that this process has had in use."""
    try:
        return _status("VmHWM")
    except OSError:
        return _highest()


def _status(key: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(text.partition(f"{key}:")[2].split()[0])


def _highest() -> int:
    import resource

    # Counted in bytes on macOS, in KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(_measure(sys.argv[1]))
