"""The results of an experiment on disk; finished cells are never lost or run twice."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError, reason, shortened
from demix._support.files import open_regular, write_atomic
from demix._support.outputs import check_folder, claim_folder, refuse_other, remove_only
from demix._support.validation import check_seed
from demix.papers.runner.declaration import Experiment, Model, Row
from demix.papers.runner.progress import made_folder
from demix.papers.runner.scales import Scale
from demix.report.page import MARK

FILE = "results.json"
TABLES = ("table.html", "table.md", "figure.svg", "figure.png")
"""What is made of the results."""

_UNFINISHED = "unfinished"
# What results are at the most, in bytes; a stranger's file may be any size.
_MOST = 2**24


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
        self._models = {row.number: row.models for row in experiment.rows}
        self.records: list[dict[str, Any]] = []
        if self.path.exists():
            self.records = self._read()
        else:
            self._write()
        self._refuse_others()
        check_folder(self.unfinished)
        if self.unfinished.exists():
            for record in self.records:  # one that was killed in between may have left some
                self._tidy(record)

    def _refuse_others(self) -> None:
        """Refuse a folder with tables of somebody else: each of ours comes with a page."""
        page = self.folder / TABLES[0]
        refuse_other(page, MARK)
        there = [name for name in TABLES[1:] if (self.folder / name).exists()]
        # A run that was killed may have written one without the page, of cells that it knows.
        if there and not page.exists() and not self.records:
            raise DemixError(
                f"{self.folder} holds a {there[0]} that demix did not write; choose another folder."
            )

    def _read(self) -> list[dict[str, Any]]:
        try:
            with open_regular(self.path) as file:
                raw = file.read(_MOST + 1)
            if len(raw) > _MOST:
                raise TypeError(f"it is larger than {_MOST >> 20} MB")
            records = json.loads(raw.decode("utf-8"))
            if not isinstance(records, list):
                raise TypeError(f"it holds {type(records).__name__}")
            held = {f"{record['experiment']} at {record['scale']} scale" for record in records}
            json.dumps(records, allow_nan=False)  # as they are to be written again
            strange = [record for record in records if not self._is_cell(*_key(record))]
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
                f"Expected results of cells of {self.content} in {self.path}, but found {named}; "
                "choose another folder."
            )
        return records

    def _is_cell(self, row: Any, seed: Any, model: Any) -> bool:
        """Whether a record names a cell of the experiment; folders are made of these names."""
        with suppress(DemixError):
            whole = type(row) is int and type(seed) is int
            return whole and check_seed(seed) == seed and model in self._models.get(row, ())
        return False

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
        return made_folder(self.unfinished, _name(row, seed, model))

    def _tidy(self, record: dict[str, Any]) -> None:
        """Remove what was kept of a cell until it was finished."""
        check_folder(self.unfinished)
        kept = self.unfinished / _name(*_key(record))
        if kept.is_symlink():
            return
        # Nothing but what is kept there: a folder that holds more stays, with the rest of it.
        remove_only(kept, "checkpoint*.safetensors")
        with suppress(OSError):  # others are kept there
            self.unfinished.rmdir()

    def _write(self) -> None:
        write_atomic(self.path, json.dumps(self.records, indent=1, allow_nan=False) + "\n")


def _key(record: dict[str, Any]) -> tuple[int, int, str]:
    return record["row"], record["seed"], record["model"]


def _name(row: int, seed: int, model: Model) -> str:
    return f"{row}-{seed}-{model}"
