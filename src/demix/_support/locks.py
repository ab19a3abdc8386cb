"""One run at a time in a folder."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from demix._support.errors import DemixError, warn
from demix._support.files import LOCK, open_own, remove_torn

try:
    import fcntl
except ImportError:  # pragma: no cover  not on this system
    fcntl = None  # type: ignore[assignment]

# How the words of a lock begin.
_START = b'{"process": '


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Keep a folder, which exists, to this run; another one is told who has it.

    The kernel lets go of it when the process ends in any way, kill -9 among them, so that a lock
    never outlives its holder. What killed runs had half written is removed first.

    Examples
    --------
    >>> import tempfile
    >>> from demix._support.locks import lock_folder
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(folder):
    ...     with lock_folder(folder):
    ...         pass
    Traceback (most recent call last):
    demix.DemixError: ... is in use by process ...; wait for it or choose another folder.
    """
    folder = Path(folder)
    opened = None if fcntl is None else _locked(folder)
    try:
        remove_torn(folder)
        yield folder
    finally:
        if opened is not None:
            # Removed while it is held: whoever opened it meanwhile sees that it is gone.
            (folder / LOCK).unlink(missing_ok=True)
            os.close(opened)


def _locked(folder: Path) -> int | None:
    """Return the open file that holds the lock; None where the file system knows no locks."""
    path = folder / LOCK
    while True:
        opened = open_own(path, os.O_CREAT)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(opened, path):
                _check_ours(opened, path)
                with suppress(OSError):  # on a full disk it is held without a word
                    os.truncate(opened, 0)
                    os.pwrite(opened, json.dumps(_self()).encode(), 0)
                return opened
        except BlockingIOError:
            who = _told(os.pread(opened, 4096, 0))
            os.close(opened)
            raise DemixError(
                f"{folder} is in use by {who}; wait for it or choose another folder."
            ) from None
        except DemixError:
            os.close(opened)
            raise
        except OSError as error:
            if os.fstat(opened).st_size == 0:
                path.unlink(missing_ok=True)
            os.close(opened)
            warn(
                f"{folder} cannot be locked ({error.strerror}); see to it that no other run writes "
                "to it."
            )
            return None
        os.close(opened)


def _check_ours(opened: int, path: Path) -> None:
    """Refuse a file of this name that another program keeps something in."""
    start = os.pread(opened, len(_START), 0)
    if start and start != _START:
        raise DemixError(
            f"Expected {path} to be the lock of demix, but it holds something else; remove it or "
            "choose another folder."
        )


def _is_there(opened: int, path: Path) -> bool:
    """Whether an open file is still the one of this name, not one that was removed."""
    try:
        return os.path.samestat(os.fstat(opened), path.lstat())
    except FileNotFoundError:
        return False


def _self() -> dict[str, str | int]:
    program = Path(sys.argv[0]).name
    return {
        "process": os.getpid(),
        "host": platform.node(),
        "since": datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        "command": shlex.join(["demix" if program == "__main__.py" else program, *sys.argv[1:]]),
    }


def _told(raw: bytes) -> str:
    """Return who holds a lock, in words."""
    try:
        who = json.loads(raw)
        return f"process {who['process']} on {who['host']} since {who['since']} ({who['command']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
