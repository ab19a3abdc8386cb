"""Where a result comes from: versions, machine and commit."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn")


def provenance(*packages: str) -> dict[str, str | int]:
    """Return versions, also of ``packages`` that are installed, cores, threads, ranks, commit."""
    from demix import __version__

    facts: dict[str, str | int] = {"demix": __version__}
    facts |= {name: version(name) for name in _LIBRARIES}
    for name in packages:
        with suppress(PackageNotFoundError):
            facts[name] = version(name)
    facts["python"] = platform.python_version()
    facts["machine"] = platform.machine()
    facts["cores"] = cores()
    if "torch" in sys.modules:  # importing it only for this would take seconds
        facts["threads"] = sys.modules["torch"].get_num_threads()
        distributed = sys.modules["torch"].distributed
        if distributed.is_available() and distributed.is_initialized():
            facts["ranks"] = distributed.get_world_size()
    commit = _commit()
    return facts | ({"commit": commit} if commit else {})


def origin_of(about: Mapping[str, str]) -> dict[str, str]:
    """Return the command line, and what else is known about the origin of a result."""
    return {"command": shlex.join(["demix", *sys.argv[1:]]), **about}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _commit() -> str | None:
    """Return the commit of the checkout that this package runs from, if it runs from one."""
    root = Path(__file__).resolve().parents[3]
    program = shutil.which("git")
    if not (root / ".git").exists() or program is None or not os.path.isabs(program):
        return None

    def git(*arguments: str) -> str:
        command = [program, "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "src")
        return git("rev-parse", "HEAD") + ("-modified" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
