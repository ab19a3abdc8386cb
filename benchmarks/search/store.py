"""Finished runs on disk, one file for each process that makes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix._support.files import write_atomic

FILE = "search.json"
Record = dict[str, Any]
Key = tuple[str, int, str, int, float]


def key(record: Record) -> Key:
    """Return what names a run."""
    experiment, row, variant = record["experiment"], record["row"], record["variant"]
    return experiment, row, variant, record["seed"], record["budget"]


def read(folder: Path) -> list[Record]:
    """Return the runs of all files in ``folder``, each once."""
    found: dict[Key, Record] = {}
    for path in _files(folder):
        try:
            records = json.loads(path.read_text(encoding="utf-8"))
            found |= {key(record): record for record in records}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DemixError(f"{path} is not a list of search results: {error}.") from error
    return [found[name] for name in sorted(found)]


def add(folder: Path, record: Record, part: int | None = None) -> None:
    """Keep a finished run, in the file of its part."""
    path = folder / (FILE if part is None else f"search.{part}.json")
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    _write(path, [*known, record])


def merge(folder: Path) -> int:
    """Gather the files of all parts into one, and return the number of runs."""
    records = read(folder)
    _write(folder / FILE, records)
    for path in _files(folder):
        if path.name != FILE:
            path.unlink()
    return len(records)


def _files(folder: Path) -> list[Path]:
    names = re.compile(r"search(\.[0-9]+)?\.json")
    return sorted(file for file in folder.glob("*.json") if names.fullmatch(file.name))


def _write(path: Path, records: list[Record]) -> None:
    write_atomic(path, json.dumps(records, indent=1, allow_nan=False) + "\n")
