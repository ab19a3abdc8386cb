"""Compile the kernel once for this machine and cache it where nobody else can write."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from demix._support.errors import warn
from demix._support.files import kind_of

_NAMES = ("kernel.c", "vectors.inc", "pairs.inc", "layers.inc")
_SOURCES = [Path(__file__).with_name(name) for name in _NAMES]
_FLAGS = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-shared", "-fPIC"]


@cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel; None where nothing compiles it or others could change it."""
    # By ``$CC`` or ``cc``; kept in the cache folder by source, compiler and processor.
    command = _command()
    if command is None:
        return None
    try:
        kept = _cache_folder() / f"kernel-{_fingerprint(command)}.so"
        wrong = unsafe(kept)
        if wrong is None:
            if not _is_whole(kept):
                _compile(command, kept)
            return ctypes.CDLL(str(kept))
    except subprocess.CalledProcessError:
        return None
    except (OSError, RuntimeError) as error:
        wrong = str(error).rstrip(".")
    warn(
        f"Expected a safe place for the compiled kernel, but {wrong}; set XDG_CACHE_HOME to a "
        "folder that only you can write to, or slower code serves."
    )
    return None


def unsafe(file: Path) -> str | None:
    """Return why others may write to a file, which need not exist, or above it; None if not."""
    for depth, place in enumerate((file, *file.parents)):
        try:
            found = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        kind = kind_of(found.st_mode)
        if kind != ("a folder" if depth else None):
            return f"{place} is {kind or 'a file'}"
        if not hasattr(os, "geteuid"):  # pragma: no cover  not on this system
            continue
        if found.st_uid != os.geteuid() and (depth < 2 or found.st_uid != 0):
            return f"{place} belongs to another user"
        # In a folder like /tmp (sticky bit) nobody can replace files of others.
        if found.st_mode & 0o022 and (depth < 2 or not found.st_mode & stat.S_ISVTX):
            return f"others may write to {place}"
    return None


def _command() -> list[str] | None:
    try:
        words = shlex.split(os.environ.get("CC", "cc"))
    except ValueError:  # an unclosed quotation mark
        return None
    found = shutil.which(words[0]) if words else None
    if found is None:
        return None
    if not os.path.isabs(found):
        warn(
            f"Expected a C compiler by its absolute path, but found {found}; set CC to that path, "
            "or slower code serves."
        )
        return None
    return [found, *words[1:], *_FLAGS]


def _compile(command: list[str], kept: Path) -> None:
    """Compile to a temporary file, append a checksum and rename, so that ``kept`` is complete."""
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        subprocess.run(
            [*command, str(_SOURCES[0]), "-o", str(made), "-lm"],
            cwd=folder,  # empty entries of PATH and the like mean the current folder: a stranger's
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not made.exists():  # a compiler that did nothing
            raise subprocess.CalledProcessError(0, command)
        with made.open("ab") as file:
            file.write(hashlib.sha256(made.read_bytes()).digest())
        made.chmod(0o700)  # whatever the umask allows others
        made.replace(kept)


def _is_whole(kept: Path) -> bool:
    """Tell whether the library ends in its own checksum; a damaged one would crash."""
    try:
        content = kept.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def _fingerprint(command: list[str]) -> str:
    """Return a digest of all that the library depends on, the processor included."""
    parts = [source.read_bytes() for source in _SOURCES]
    parts += [os.fsencode(" ".join(command)), platform.platform().encode(), _processor().encode()]
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
    """Create and return the folder, by a path without links."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():  # to be ignored, by the XDG specification
        root = Path.home() / ".cache"
    if not root.is_absolute():
        raise RuntimeError(f"{root} is a relative path")
    folder = root.resolve() / "demix"
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
    return folder
