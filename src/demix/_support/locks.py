"""One run at a time in a folder."""

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
from demix._support.files import LOCK, open_own, remove_stale

_START = b'{"process": '


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Lock a folder until this process ends in any way; raise with who holds it if it is locked."""
    folder = Path(folder)
    locked = _lock(folder)
    try:
        remove_stale(folder)  # of killed runs
        yield folder
    finally:
        if locked is not None:
            # Removed while it is locked: who has opened it meanwhile sees that it is gone.
            with suppress(OSError):
                if _is_there(locked, folder / LOCK):  # else it is somebody else's
                    (folder / LOCK).unlink()
            os.close(locked)


def _lock(folder: Path) -> int | None:
    """Return the locked file; None, with a warning, if the file system has no locks."""
    from filelock import lock_descriptor

    path = folder / LOCK
    while True:
        opened = open_own(path, os.O_CREAT)
        try:
            locked = lock_descriptor(opened, blocking=False)
            held = _read(opened)
            if not locked:
                raise DemixError(
                    f"{folder} is in use by {_holder(held)}; wait for it or choose another folder."
                )
            if _is_there(opened, path):  # else its last holder has just removed it
                if held and not held.startswith(_START):
                    raise DemixError(
                        f"Expected {path} to be the lock of demix, but it holds something else; "
                        "remove it or choose another folder."
                    )
                with suppress(OSError):  # on a full disk the lock names nobody
                    os.truncate(opened, 0)
                    os.lseek(opened, 0, os.SEEK_SET)
                    os.write(opened, json.dumps(_self()).encode())
                return opened
        except DemixError:
            os.close(opened)
            raise
        except OSError as error:
            if os.fstat(opened).st_size == 0:
                path.unlink(missing_ok=True)
            os.close(opened)
            warn(f"{folder} cannot be locked ({error.strerror}); let no other run write to it.")
            return None
        os.close(opened)


def _read(opened: int) -> bytes:
    """Return what a lock holds; nothing where a locked file cannot be read."""
    with suppress(PermissionError):
        os.lseek(opened, 0, os.SEEK_SET)
        return os.read(opened, 4096)
    return b""


def _is_there(opened: int, path: Path) -> bool:
    """Whether an open file still has this name."""
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


def _holder(raw: bytes) -> str:
    """Return who holds a lock, in words."""
    try:
        who = json.loads(raw)
        return f"process {who['process']} on {who['host']} since {who['since']} ({who['command']})"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another process"
