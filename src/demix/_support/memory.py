"""How much memory there is, and a word before the work starts if that is too little."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from demix._support.errors import DemixError

try:
    import resource
except ImportError:  # pragma: no cover  not on this system
    resource = None  # type: ignore[assignment]

# What an estimate may be off by, and what libraries take for themselves.
_SAFETY, _BASE = 1.3, 100 << 20


def check_memory(needed: float, what: str, advice: str) -> None:
    """Refuse to begin what will not fit into memory.

    Parameters
    ----------
    needed : float
        The bytes that it will take at its peak beside what this process has already, roughly; a
        third is added for what an estimate may miss, and 100 MiB for libraries.
    what : str
        What is about to begin; the sentence begins with it.
    advice : str
        How it takes less.

    Examples
    --------
    >>> from demix._support.memory import check_memory
    >>> check_memory(1e15, "Training", "take a smaller batch")
    Traceback (most recent call last):
    demix.DemixError: Training needs about 1.3e+03 TB of memory, ...; take a smaller batch.
    """
    enough = _SAFETY * needed + _BASE
    room, limit = min(_limits())
    if enough > room:
        raise DemixError(
            f"{what} needs about {in_words(enough)} of memory, but {in_words(max(0, room))} are "
            f"available ({limit}); {advice}."
        )


def available_memory() -> float:
    """Return the bytes that this process can take; infinity where the system does not say.

    Examples
    --------
    >>> from demix._support.memory import available_memory
    >>> available_memory() > 2**20
    True
    """
    return min(_limits())[0]


def in_words(size: float) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> from demix._support.memory import in_words
    >>> in_words(3_072_000_000), in_words(2_500)
    ('3.1 GB', '2.5 kB')
    """
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def _limits() -> Iterator[tuple[float, str]]:
    """Go through all that limits this process: bytes that are left, and what limits them."""
    yield _machine(), "on this machine"
    yield from _groups()
    if resource is not None:
        status, most = Path("/proc/self/status"), resource.RLIM_INFINITY
        for kind, taken, name in (
            (resource.RLIMIT_AS, "VmSize:", "limit of the address space, ulimit -v"),
            (resource.RLIMIT_DATA, "VmData:", "limit of the data segment, ulimit -d"),
        ):
            soft = resource.getrlimit(kind)[0]
            if soft != most:
                with suppress(OSError, LookupError, ValueError):
                    yield soft - 1024 * _field(status, taken), name


def _machine() -> float:
    """Return the bytes that can be taken without swapping, or all if nobody knows."""
    try:
        return 1024 * _field(Path("/proc/meminfo"), "MemAvailable:")
    except (OSError, LookupError, ValueError):
        known = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else math.inf


def _groups() -> Iterator[tuple[float, str]]:
    """Go through the control groups that this process is in, those around them included."""
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        for number, kinds, place in (line.split(":", 2) for line in lines):
            if number == "0":
                root, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current")
            elif "memory" in kinds.split(","):
                root = Path("/sys/fs/cgroup/memory")
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            else:
                continue
            inner = root / place.lstrip("/")
            for folder in (inner, *inner.parents):
                if folder.is_relative_to(root):
                    yield from _group(folder, *names)


def _group(folder: Path, limit: str, usage: str) -> Iterator[tuple[float, str]]:
    with suppress(OSError, LookupError, ValueError):
        most = int((folder / limit).read_text(encoding="ascii"))  # not a number if there is none
        used = int((folder / usage).read_text(encoding="ascii"))
        with suppress(OSError, LookupError, ValueError):
            # What was read from files and can be let go again.
            used -= _field(folder / "memory.stat", "inactive_file ")
        yield most - used, "limit of the control group"


def _field(file: Path, name: str) -> int:
    """Return the number after a name in a file of the kernel."""
    for line in file.read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.removeprefix(name).split()[0])
    raise LookupError(name)
