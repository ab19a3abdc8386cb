"""How much memory is available, and a refusal before work begins that needs more."""

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

_SAFETY, _BASE = 1.3, 100 << 20  # what estimates are off by, and libraries take for themselves
_UNREADABLE = (OSError, LookupError, ValueError)  # a file of the kernel is missing, or odd


def check_memory(needed: float, what: str, advice: str) -> None:
    """Raise a DemixError if ``what`` will not fit into memory; ``advice`` says what helps."""
    # On top of what this process has already; more bytes than a float holds are as many as that.
    enough = _SAFETY * min(needed, 1e300) + _BASE
    room, limit = min(_limits())
    if enough > room:
        raise DemixError(
            f"{what} needs about {in_words(enough)} of memory, but {in_words(max(0, room))} are "
            f"available ({limit}); {advice}."
        )


def available_memory() -> float:
    """Return the bytes that this process can take; infinity where the system does not say."""
    return min(_limits())[0]


def in_words(size: float) -> str:
    """Return a number of bytes in words, such as ``3.07 GB``."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def _limits() -> Iterator[tuple[float, str]]:
    """Yield all limits of this process: bytes that are left, and what limits them."""
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
                with suppress(*_UNREADABLE):
                    yield soft - 1024 * _field(status, taken), name


def _machine() -> float:
    """Return the bytes that can be taken without swapping; infinity if unknown."""
    try:
        return 1024 * _field(Path("/proc/meminfo"), "MemAvailable:")
    except _UNREADABLE:
        known = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else math.inf


def _groups() -> Iterator[tuple[float, str]]:
    """Yield the limits of the control groups of this process and their parents."""
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
                # Not a number if there is no limit; none of these files lies above the root.
                with suppress(*_UNREADABLE):
                    most, used = (int((folder / x).read_text(encoding="ascii")) for x in names)
                    with suppress(*_UNREADABLE):
                        # Cached files, which the kernel drops when memory is needed.
                        used -= _field(folder / "memory.stat", "inactive_file ")
                    yield most - used, "limit of the control group"


def _field(file: Path, name: str) -> int:
    """Return the number after a name in a file of the kernel."""
    for line in file.read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.removeprefix(name).split()[0])
    raise LookupError(name)
