"""Compile the kernel once for this machine and keep it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

_SOURCES = [Path(__file__).with_name(name) for name in ("kernel.c", "pairs.inc")]
_FLAGS = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-shared", "-fPIC"]


@cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, or None where nothing can compile it.

    The compiler is ``$CC``, or else ``cc``. The result is kept under ``$XDG_CACHE_HOME/demix``
    (``~/.cache/demix``), by the source, the compiler and the processor it was made for.

    Examples
    --------
    >>> from demix.objectives.compiled.build import library
    >>> library() is library()
    True
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not compiler or shutil.which(compiler[0]) is None:
        return None
    command = [*compiler, *_FLAGS]
    try:
        kept = _cache_folder() / f"kernel-{_fingerprint(command)}.so"
        if not _is_whole(kept):
            _compile(command, kept)
        return ctypes.CDLL(str(kept))
    except (OSError, subprocess.CalledProcessError):
        return None


def _compile(command: list[str], kept: Path) -> None:
    """Compile beside ``kept``, seal with a checksum and rename: nobody meets half a library."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        subprocess.run(
            [*command, str(_SOURCES[0]), "-o", str(made), "-lm"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with made.open("ab") as file:
            file.write(hashlib.sha256(made.read_bytes()).digest())
        made.replace(kept)


def _is_whole(kept: Path) -> bool:
    """Tell whether the library ends in its own checksum: a torn one would kill the process."""
    try:
        content = kept.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def _fingerprint(command: list[str]) -> str:
    """Name what the library depends on: another processor of a cluster must not run it."""
    parts = [source.read_bytes() for source in _SOURCES]
    parts += [" ".join(command).encode(), platform.platform().encode(), _processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _processor() -> str:
    """Return the processor's features, which ``-march=native`` uses."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    features = ("model name", "flags", "features", "cpu part")
    return "\n".join(sorted({line for line in lines if line.lower().startswith(features)}))


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "demix"
