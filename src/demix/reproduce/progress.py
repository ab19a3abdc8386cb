"""How cells are going that run elsewhere, through files, which any executor's workers can write."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demix.errors import DemixError
from demix.training import Record

_EVERY = 0.25


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
        self.folder = folder / f"sweep-{name}"
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            reason = error.strerror or error
            raise DemixError(
                f"Cannot write to {folder}: {reason}; choose a folder you may write to."
            ) from error

    def note(self, cell: str) -> Note:
        """Return what the cell is to be told with."""
        return Note(self.folder / f"{cell}.json")

    def read(self) -> Iterator[tuple[str, int, int, Record]]:
        """Yield name, step, steps and latest record of every running cell."""
        for file in sorted(self.folder.glob("*.json")):
            # One that is being written is read the next time.
            with suppress(OSError, ValueError):
                yield file.stem, *json.loads(file.read_text(encoding="utf-8"))

    def wipe(self, cell: str) -> None:
        """Remove the note of a cell that is finished."""
        (self.folder / f"{cell}.json").unlink(missing_ok=True)

    def close(self) -> None:
        """Take the board away; cells that are still running end when they miss it."""
        remove_boards(self.folder.parent)


def remove_boards(folder: Path) -> None:
    """Take away all boards in a folder: of a sweep that ends, and of earlier ones that were killed.

    Whoever still writes on one has nobody to read it.
    """
    for board in folder.glob("sweep-*"):
        gone = board.with_name(f"gone-{board.name}")
        with suppress(OSError):
            board.rename(gone)  # at one stroke, whoever is writing on it
    for gone in folder.glob("gone-*"):
        shutil.rmtree(gone, ignore_errors=True)
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
            self.file.write_text(json.dumps([step, steps, record]), encoding="utf-8")
        except FileNotFoundError:
            raise KeyboardInterrupt from None
        except OSError:
            pass  # a full disk, for example: the cell goes on unseen
