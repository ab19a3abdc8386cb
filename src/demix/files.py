"""Writing files so that a crash never leaves half of one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from demix.errors import DemixError


def write_atomic(path: str | Path, data: str | bytes) -> Path:
    """Write ``data`` to ``path``: afterwards there is the old file or the new one, never a mix.

    Missing folders are made. What the operating system refuses becomes a :class:`DemixError`.

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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise DemixError(
            f"Cannot write {path}: {reason}; choose a folder you may write to."
        ) from error
    return path


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
        present = any(folder.iterdir())
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


def _is_ours(marker: Path, command: str | None) -> bool:
    if command is None or not marker.is_file():
        return marker.is_file()
    try:
        written = json.loads(marker.read_text(encoding="utf-8"))["provenance"]["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(written).startswith(command)
