"""How cells are going that run elsewhere, through files, which any executor's workers can write."""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.files import is_trouble, open_own
from demix._support.outputs import check_folder, read_marker, remove_only
from demix.training.loop import Record

_EVERY = 0.25
# Names of notes: row, seed and model.
_NOTES = "[0-9]*-[0-9]*-*.json"


class Board:
    """A folder of notes, one for each cell that is running.

    Parameters
    ----------
    folder : Path
        Where it is made.
    name : str
        Name of the sweep.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = made_folder(folder, f"sweep-{name}")

    def note(self, cell: str) -> Note:
        """Return what the cell is to be told with."""
        return Note(self.folder / f"{cell}.json")

    def read(self) -> Iterator[tuple[str, int, int, Record]]:
        """Yield name, step, steps and latest record of every running cell."""
        for file in sorted(self.folder.glob("*.json")):
            match read_marker(file):  # None of one that is being written
                case [int(step), int(steps), dict(record)]:
                    yield file.stem, step, steps, record

    def wipe(self, cell: str) -> None:
        """Remove the note of a cell that is finished."""
        with suppress(OSError):
            (self.folder / f"{cell}.json").unlink()

    def close(self) -> None:
        """Take the board away; cells that are still running end when they miss it."""
        remove_boards(self.folder.parent)


def made_folder(parent: Path, name: str) -> Path:
    """Return the folder ``name`` in a folder of our own; both are made."""
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


def remove_boards(folder: Path) -> None:
    """Take away all boards in a folder: of a sweep that ends, and of earlier ones that were killed.

    Whoever still writes on one has nobody to read it. Links that bear their names lead nowhere.
    """
    check_folder(folder)
    for board in folder.glob("sweep-*"):
        gone = board.with_name(f"gone-{board.name}")
        with suppress(OSError):
            if board.is_dir():
                board.rename(gone)  # at one stroke, whoever is writing on it
    for gone in folder.glob("gone-*"):
        if not gone.is_symlink():
            remove_only(gone, _NOTES)
    with suppress(OSError):  # it may hold unfinished cells
        folder.rmdir()


@dataclass
class Note:
    """Writes down how a cell is going, a few times a second.

    Where the board is gone, nobody waits for the cell any more, and it is interrupted.
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
            if is_trouble(error, errno.ENOENT):
                raise KeyboardInterrupt from None
            return  # a full disk, for example: the cell goes on unseen
        with suppress(OSError), os.fdopen(opened, "w", encoding="utf-8") as file:
            file.truncate()
            file.write(json.dumps([step, steps, record]))
