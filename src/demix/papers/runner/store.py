"""The results of an experiment on disk, and the progress of its jobs in files beside them."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demix._support import files
from demix._support.errors import DemixError, reason, shortened
from demix._support.outputs import check_folder, claim_folder, read_marker
from demix._support.validation import check_seed
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.scales import Scale
from demix.training.checkpoints import is_checkpoint
from demix.training.loop import Record

FILE = "results.json"
_UNFINISHED = "unfinished"
_CHECKPOINTS = r"checkpoint(-[0-9]+)?(\.previous)?\.safetensors"
# All else that a record holds are single numbers.
_WORDS = {"encoder", "experiment", "factor", "model", "objective", "pairs", "scale"}
_NESTED = {"accuracies", "held_interval", "history", "images", "left_out", "provenance"}
_NESTED |= {"readouts", "stages", "theory", "top1", "widths"}
# The largest file of results in bytes, and the longest word; a stranger's may be any size.
_MOST, _LONGEST = 2**24, 1000
_EVERY = 0.25  # seconds between notes of a job
# Names of boards of sweeps, and of notes: row, seed and model.
_BOARD, _NOTES = re.compile(r"(gone-)?sweep-[0-9a-f]{32}"), r"[0-9]+-[0-9]+-[a-z_]+\.json"


class Store:
    """``results.json`` in a folder: one record per finished job of an experiment at a scale.

    The folder ``unfinished`` in it holds the checkpoints of the other jobs.
    """

    def __init__(self, folder: str | Path, experiment: Experiment, scale: Scale) -> None:
        self.folder = claim_folder(folder, FILE)
        self.path = self.folder / FILE
        # Absolute: workers may have been started in another folder.
        self.unfinished = self.folder.resolve() / _UNFINISHED
        self.content = f"{experiment.name} at {scale.name} scale"
        self._models = {row.number: row.models for row in experiment.rows}
        self.records: list[dict[str, Any]] = []
        if self.path.exists():
            self.records = self._read()
        else:
            self._write()
        check_folder(self.unfinished)
        if self.unfinished.exists():
            for record in self.records:  # a killed run may have left some
                self._tidy(record)

    def _read(self) -> list[dict[str, Any]]:
        try:
            with files.open_regular(self.path) as file:
                raw = file.read(_MOST + 1)
            if len(raw) > _MOST:
                raise TypeError(f"it is larger than {_MOST >> 20} MB")
            records = json.loads(raw.decode("utf-8"))
            if not isinstance(records, list):
                raise TypeError(f"it holds {type(records).__name__}")
            held = {f"{record['experiment']} at {record['scale']} scale" for record in records}
            json.dumps(records, allow_nan=False)  # as they are to be written again
            strange = [record for record in records if not self._is_job(*_key(record))]
            for record in records if not strange else ():
                _check_values(record)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DemixError(
                f"{self.path} is not a list of demix results ({reason(error)}); choose a new "
                "folder."
            ) from error
        if held - {self.content}:
            raise DemixError(
                f"{self.folder} holds results of {shortened(', '.join(sorted(held)), 200)}, not of "
                f"{self.content}; choose another folder."
            )
        if strange:
            named = shortened("row {}, seed {}, model {}".format(*_key(strange[0])), 100)
            raise DemixError(
                f"Expected results of jobs of {self.content} in {self.path}, but found {named}; "
                "choose another folder."
            )
        keys = [_key(record) for record in records]
        if len(set(keys)) < len(keys):
            raise DemixError(
                f"Expected each job once in {self.path}, but one is there twice; remove it, or "
                "choose another folder."
            )
        return records

    def _is_job(self, row: Any, seed: Any, model: Any) -> bool:
        """Return whether a record names a job of the experiment; its names become folders."""
        with suppress(DemixError):
            whole = type(row) is int and type(seed) is int
            return whole and check_seed(seed) == seed and model in self._models.get(row, ())
        return False

    def check_data(self, digests: Mapping[int, str | None]) -> None:
        """Refuse records of rows, given by number, that were made from other data than these."""
        for record in self.records:
            row = record["row"]
            if row in digests and data_of(record) != digests[row]:
                raise DemixError(
                    f"Expected results of row {row} in {self.path} from the data that are given, "
                    "but they were made from other data; give those, or choose another folder."
                )

    def get(self, row: int, seed: int, model: str) -> dict[str, Any] | None:
        """Return the record of a job, if it is finished."""
        key = (row, seed, model)
        return next((record for record in self.records if _key(record) == key), None)

    def add(self, record: dict[str, Any]) -> None:
        """Keep the record of a finished job, and remove its checkpoint."""
        # Another run into the same folder may have finished jobs meanwhile.
        known = self._read() if self.path.exists() else self.records
        others = [other for other in known if _key(other) != _key(record)]
        self.records = sorted([*others, record], key=_key)
        self._write()
        self._tidy(record)

    def begin(self, row: int, seed: int, model: str) -> Path:
        """Make and return the folder for the checkpoint of a job."""
        return made_folder(self.unfinished, _name(row, seed, model))

    def _tidy(self, record: dict[str, Any]) -> None:
        """Remove the checkpoint of a finished job."""
        check_folder(self.unfinished)
        kept = self.unfinished / _name(*_key(record))
        if kept.is_symlink():
            return
        # Nothing but the checkpoint: a folder that holds more stays, with the rest of it.
        remove_only(kept, _CHECKPOINTS, is_checkpoint)
        with suppress(OSError):  # others are kept there
            self.unfinished.rmdir()

    def _write(self) -> None:
        files.write_atomic(self.path, json.dumps(self.records, indent=1, allow_nan=False) + "\n")


def data_of(record: dict[str, Any]) -> Any:
    """Return the checksum of the data that a record was made from."""
    return dict(record.get("provenance", {})).get("data")


def _check_values(record: dict[str, Any]) -> None:
    """Raise TypeError for values that no job writes: tables multiply and print them."""
    for name, value in record.items():
        word = name in _WORDS and len(str(value)) <= _LONGEST
        kinds = {str} if word else {list, dict} if name in _NESTED else set()
        if type(value) not in {int, float, bool, type(None)} | kinds:
            raise TypeError(f"{shortened(name)} is no number")
        if name != "theory" and _has_lists_of_words(value):
            raise TypeError(f"{shortened(name)} holds no numbers")
    origin = dict(record.get("provenance", {}))
    commit = str(origin.get("commit", "unknown")).removesuffix("-modified")
    if type(origin.get("cores", 1)) is not int or not commit.isalnum():
        raise TypeError("its provenance is none")


def _has_lists_of_words(value: Any) -> bool:
    """Whether there are words in a list: in an array, each would take the room of the longest."""
    match value:
        case dict():
            return any(map(_has_lists_of_words, value.values()))
        case list():
            return any(type(each) is str or _has_lists_of_words(each) for each in value)
    return False


def _key(record: dict[str, Any]) -> tuple[int, int, str]:
    return record["row"], record["seed"], record["model"]


def _name(row: int, seed: int, model: str) -> str:
    return f"{row}-{seed}-{model}"


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
        raise files.refused(folder, error) from error
    return folder


def remove_only(folder: Path, names: str, is_ours: Callable[[Path], bool]) -> None:
    """Remove files of demix whose names match a regular expression, and then an empty folder."""
    with suppress(OSError):
        files.remove_stale(folder)
    for file in folder.glob("*"):
        with suppress(OSError):
            if re.fullmatch(names, file.name) and is_ours(file):
                file.unlink()
    with suppress(OSError):
        folder.rmdir()


def remove_boards(folder: Path) -> None:
    """Remove all boards in a folder, also those of killed sweeps; links are not followed."""
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
    """Writes the progress of a job to a file, and interrupts it if the board is gone."""

    file: Path
    written: float = -math.inf

    def __call__(self, step: int, steps: int, record: Record) -> None:
        """Write the step, unless one was just written."""
        if time.monotonic() - self.written < _EVERY:
            return
        self.written = time.monotonic()
        try:
            opened = files.open_own(self.file, os.O_CREAT)
        except DemixError as error:
            if files.is_os_error(error, errno.ENOENT):
                raise KeyboardInterrupt from None
            return  # a full disk, for example: the job goes on without a note
        with suppress(OSError), os.fdopen(opened, "w", encoding="utf-8") as file:
            file.truncate()
            file.write(json.dumps([step, steps, record]))
