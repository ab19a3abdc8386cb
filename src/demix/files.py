"""Writing files so that a crash never leaves half of one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from demix.errors import DemixError

LOCK = ".lock"
"""The file of a folder that says who writes to it."""

_TORN = re.compile(r"\..+\.(?P<process>\d+)\.tmp")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomic(path: str | Path, data: str | bytes, *, before: Path | None = None) -> Path:
    """Write ``data`` to ``path``: afterwards there is the old file or the new one, never a mix.

    Missing folders are made. What is told to be written is on the disk when this returns. What the
    operating system refuses becomes a :class:`DemixError`.

    Parameters
    ----------
    path : str or Path
        The file.
    data : str or bytes
        What it is to hold; text in UTF-8.
    before : Path, optional
        Where the old file goes, in the same folder; a crash in between leaves only this one.

    Examples
    --------
    >>> import tempfile
    >>> from demix.files import write_atomic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(folder + "/a.txt", "hello").read_text()
    'hello'
    """
    path = Path(path)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    with _replacing(path, before) as file:
        file.write(raw)
    return path


@contextmanager
def new_array(path: str | Path, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Give an array of float32 to be filled, larger than memory if need be.

    Afterwards ``path`` is an ``.npy`` file of it, or as it was if filling it failed. Room on the
    disk is taken at once: a disk that fills up under a memory map ends the process without a word.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from demix.files import new_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_array(folder + "/a.npy", (2, 3)) as array:
    ...         array[:] = 1
    ...     float(np.load(folder + "/a.npy").sum())
    6.0
    """
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with _replacing(Path(path), None) as file:
        np.lib.format.write_array_header_1_0(file, about)
        start = file.tell()
        size = 4 * int(np.prod(shape))
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), start, size)
        file.truncate(start + size)
        array = np.memmap(file, dtype="<f4", mode="r+", offset=start, shape=shape)
        yield array
        array.flush()


@contextmanager
def _replacing(path: Path, before: Path | None) -> Iterator[IO[bytes]]:
    """Give a file that takes the place of another one once it is whole."""
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if before is not None and path.exists():
                path.replace(before)
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise refused(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, too, where a system can."""
    if os.name != "posix":
        return
    # Some file systems have nothing to wait for, and say so.
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def refused(path: Path, error: OSError) -> DemixError:
    """Return the error of a file that could not be written, with what to do."""
    advice = "choose a folder you may write to"
    if error.errno in _FULL:
        advice = "make room or choose another disk; what was written before can be used"
    return DemixError(f"Cannot write {path}: {error.strerror or error}; {advice}.")


def is_trouble(error: BaseException | None, *numbers: int) -> bool:
    """Whether an error, or what caused it, came from the operating system.

    With ``numbers`` of ``errno``, whether it was one of those.
    """
    while error is not None:
        if isinstance(error, OSError) and (not numbers or error.errno in numbers):
            return True
        error = error.__cause__
    return False


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is a full disk or a limit on the size of files."""
    return is_trouble(error, *_FULL)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of what a file holds."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def claim_folder(path: str | Path, marker: str, *, command: str | None = None) -> Path:
    """Return ``path`` as a folder to write to: new, empty, or one that was written to before.

    The latter holds the file ``marker``, a JSON file whose provenance names ``command`` if that is
    given. Anything else is refused, so that nothing of the user's is overwritten.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DemixError(f"Expected a folder for the output, but {folder} is a file.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = any(not _passes(file) for file in folder.iterdir())
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        reason = error.strerror or error
        raise DemixError(
            f"Cannot use {folder} for the output: {reason}; choose a folder you may write to."
        ) from error
    if not writable:
        raise DemixError(f"Cannot write to {folder}: permission denied; choose another folder.")
    if present and not _is_ours(folder / marker, command):
        source = f" of '{command}'" if command else ""
        raise DemixError(
            f"{folder} holds something else (it is not empty and has no {marker}{source}); "
            "choose a new folder."
        )
    return folder


def remove_torn(folder: Path) -> None:
    """Remove what processes of this machine that are no more had half written in a folder."""
    for file in folder.iterdir():
        found = _TORN.fullmatch(file.name)
        ours = found and file.name.endswith(f".{platform.node()}.{found['process']}.tmp")
        if found and ours and not _runs(int(found["process"])):
            file.unlink(missing_ok=True)


def _passes(file: Path) -> bool:
    """Whether a file in a folder is there for a while only."""
    return file.name == LOCK or _TORN.fullmatch(file.name) is not None


def _runs(process: int) -> bool:
    """Whether there is such a process; always, on a system that cannot be asked."""
    try:
        if os.name == "posix":
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def _is_ours(marker: Path, command: str | None) -> bool:
    if command is None or not marker.is_file():
        return marker.is_file()
    try:
        written = json.loads(marker.read_text(encoding="utf-8"))["provenance"]["command"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return str(written).startswith(command)
