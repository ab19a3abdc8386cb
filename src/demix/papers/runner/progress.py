"""Progress of jobs in other processes, in files, which the workers of any executor can write."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.files import is_os_error, open_own
from demix._support.outputs import check_folder, read_marker
from demix.training.loop import Record

_EVERY = 0.25
# Names of boards of sweeps, and of notes: row, seed and model.
_BOARD, _NOTES = re.compile(r"(gone-)?sweep-[0-9a-f]{32}"), r"[0-9]+-[0-9]+-[a-z_]+\.json"


class Board:
    """A folder of notes, one for each running job of a sweep, named by 32 hexadecimal digits."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = made_folder(folder, f"sweep-{name}")

    def note(self, job: str) -> Note:
        """Return the callback that writes the note of a job."""
        return Note(self.folder / f"{job}.json")

    def read(self) -> Iterator[tuple[str, int, int, Record]]:
        """Yield name, step, steps and latest record of every running job."""
        for file in sorted(self.folder.glob("*.json")):
            if (note := _read(file)) is not None:  # None of one that is being written
                yield file.stem, *note

    def wipe(self, job: str) -> None:
        """Remove the note of a finished job."""
        with suppress(OSError):
            (self.folder / f"{job}.json").unlink()

    def close(self) -> None:
        """Remove the board; jobs that are still running end when they do not find it."""
        remove_boards(self.folder.parent)


def made_folder(parent: Path, name: str) -> Path:
    """Make and return the folder ``name`` in a folder of our own."""
    folder = parent / name
    check_folder(parent)
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise DemixError(
            f"Cannot write to {parent}: {reason}; choose a folder you may write to."
        ) from error
    return folder


def remove_only(folder: Path, names: str, is_ours: Callable[[Path], bool]) -> None:
    """Remove files of demix whose names match a regular expression, and then an empty folder."""
    for file in folder.glob("*"):
        with suppress(OSError):
            if re.fullmatch(names, file.name) and is_ours(file):
                file.unlink()
    with suppress(OSError):
        folder.rmdir()


def remove_boards(folder: Path) -> None:
    """Remove all boards in a folder: that of a sweep that ends, and those of killed ones.

    Links with the name of a board are not followed.
    """
    check_folder(folder)
    for board in sorted(folder.glob("*")):
        if _BOARD.fullmatch(board.name) and board.is_dir() and not board.is_symlink():
            with suppress(OSError):
                if board.name.startswith("sweep"):
                    # Atomic, even while a job writes on it.
                    board = board.rename(board.with_name(f"gone-{board.name}"))
                remove_only(board, _NOTES, _is_note)
    with suppress(OSError):  # it may hold unfinished jobs
        folder.rmdir()


def _read(file: Path) -> tuple[int, int, Record] | None:
    """Return step, steps and record of a note; None of anything else."""
    match read_marker(file):
        case [int(step), int(steps), dict(record)]:
            return step, steps, record
    return None


def _is_note(file: Path) -> bool:
    # A killed job may leave an empty one.
    return file.stat().st_size == 0 or _read(file) is not None


@dataclass
class Note:
    """Writes the progress of a job to a file, a few times a second.

    If the board is gone, nobody waits for the job any more, and the note interrupts it.
    """

    file: Path
    written: float = -math.inf

    def __call__(self, step: int, steps: int, record: Record) -> None:
        """Write the step, unless one was just written."""
        if time.monotonic() - self.written < _EVERY:
            return
        self.written = time.monotonic()
        try:
            opened = open_own(self.file, os.O_CREAT)
        except DemixError as error:
            if is_os_error(error, errno.ENOENT):
                raise KeyboardInterrupt from None
            return  # a full disk, for example: the job goes on without a note
        with suppress(OSError), os.fdopen(opened, "w", encoding="utf-8") as file:
            file.truncate()
            file.write(json.dumps([step, steps, record]))
