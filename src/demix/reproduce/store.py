"""The results of an experiment on disk; finished cells are never lost or run twice."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from demix.errors import DemixError
from demix.experiments import Experiment, Model, Row, Scale
from demix.files import write_atomic
from demix.outputs import claim_folder

FILE = "results.json"
_UNFINISHED = "unfinished"


class Store:
    """``results.json`` in a folder: a list of records, one per finished cell.

    What unfinished cells need to go on is kept beside it, in ``unfinished``, until they are.

    Parameters
    ----------
    folder : path
        New, empty, or that of an earlier run of the same experiment at the same scale.
    experiment : Experiment
        What the folder is for.
    scale : Scale
        At which scale.
    """

    def __init__(self, folder: str | Path, experiment: Experiment[Row], scale: Scale) -> None:
        self.folder = claim_folder(folder, FILE)
        self.path = self.folder / FILE
        # Absolute: workers may have been started in another folder.
        self.unfinished = self.folder.resolve() / _UNFINISHED
        self.content = f"{experiment.name} at {scale.name} scale"
        self.records: list[dict[str, Any]] = []
        if self.path.exists():
            self.records = self._read()
        else:
            self._write()
        if self.unfinished.exists():
            for record in self.records:  # one that was killed in between may have left some
                self._tidy(record)

    def _read(self) -> list[dict[str, Any]]:
        try:
            records = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(records, list):
                raise TypeError(f"it holds {type(records).__name__}")
            held = {f"{record['experiment']} at {record['scale']} scale" for record in records}
            _ = [_key(record) for record in records]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DemixError(
                f"{self.path} is not a list of demix results ({error}); choose a new folder."
            ) from error
        if held - {self.content}:
            raise DemixError(
                f"{self.folder} holds results of {', '.join(sorted(held))}, not of "
                f"{self.content}; choose another folder."
            )
        return records

    def has(self, row: int, seed: int, model: Model) -> bool:
        """Tell whether a cell is finished."""
        return self.get(row, seed, model) is not None

    def get(self, row: int, seed: int, model: Model) -> dict[str, Any] | None:
        """Return the record of a cell, if it is finished."""
        key = (row, seed, model)
        return next((record for record in self.records if _key(record) == key), None)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a finished cell; the file is replaced as a whole.

        What was kept until then is removed.
        """
        # Another run into the same folder may have finished cells meanwhile.
        known = self._read() if self.path.exists() else self.records
        self.records = sorted([*known, record], key=_key)
        self._write()
        self._tidy(record)

    def begin(self, row: int, seed: int, model: Model) -> Path:
        """Return the folder, which is made, for what is kept of a cell until it is finished."""
        folder = self._kept(row, seed, model)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise DemixError(
                f"Cannot write to {self.folder}: {reason}; choose a folder you may write to."
            ) from error
        return folder

    def _tidy(self, record: dict[str, Any]) -> None:
        """Remove what was kept of a cell until it was finished."""
        shutil.rmtree(self._kept(*_key(record)), ignore_errors=True)
        with suppress(OSError):  # others are kept there
            self.unfinished.rmdir()

    def _kept(self, row: int, seed: int, model: Model) -> Path:
        return self.unfinished / f"{row}-{seed}-{model}"

    def _write(self) -> None:
        write_atomic(self.path, json.dumps(self.records, indent=1, allow_nan=False) + "\n")


def _key(record: dict[str, Any]) -> tuple[int, int, str]:
    return record["row"], record["seed"], record["model"]
