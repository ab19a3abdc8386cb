"""Names of columns and of rows, and rows of the same name in two files."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from demix._support.errors import DemixError, demix_errors, listed
from demix._support.memory import check_memory
from demix.data.csv_files import csv_cells, csv_names
from demix.data.formats import CSV, TABLES, check_kind, find_column, known_suffix, suffix_of
from demix.data.npy_files import read_whole


def table_names(path: Path, header: str = "auto") -> list[str] | None:
    """Return the names of the columns of a table; None if it has none, or is no table."""
    suffix = suffix_of(path) if os.path.isfile(path) else None
    if suffix == ".parquet":
        from demix.data.parquet_files import parquet_names

        return parquet_names(path)
    names = csv_names(path, header) if suffix in CSV else None
    return None if names is None else list(names)


def other_names(path: Path, but: Sequence[str], header: str = "auto") -> list[str]:
    """Return the names of the columns of a table except some, and except those of an index."""
    every = names = table_names(path, header) or []
    for name in but:
        find_column(name, every, path)
    if every and suffix_of(path) == ".parquet":
        from demix.data.parquet_files import parquet_text

        names = list(parquet_text(path))
    return [name for name in names if name not in but]


def read_cells(path: Path, column: str | None, what: str) -> list[str]:
    """Return one column of a table as text; ``what`` is the word for a cell in messages."""
    if suffix_of(path) in CSV:
        return csv_cells(path, column, what)
    from demix.data.parquet_files import parquet_cells

    return parquet_cells(path, column)


def read_names(path: Path, column: str | None = None) -> list[str]:
    """Return a name for each row: a ``column`` of a table, an ``.npy`` file or lines of text."""
    expected = "names in a .txt, .csv, .parquet or .npy"
    suffix = known_suffix(path, expected, *TABLES, ".txt", ".npy")
    if suffix in TABLES:
        return read_cells(path, column, "name")
    if suffix == ".txt":
        return _lines(path)
    array = read_whole(path)
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise DemixError(
            f"Expected a name for each row, (N,) of text, but {path} is {array.dtype} of shape "
            f"{array.shape}."
        )
    return [str(name) for name in array]


class Matched(NamedTuple):
    """Numbers of rows ``(M,)`` that belong together, and names that only one side has."""

    first: np.ndarray
    second: np.ndarray
    only_first: list[str]
    only_second: list[str]


def match_rows(
    first: Sequence[str], second: Sequence[str], *, called: tuple[str, str] = ("first", "second")
) -> Matched:
    """Return which rows have the same name in both, in the order of the first."""
    # If not a single name is in both, they are compared as file names without folders.
    for names, words in zip((first, second), called, strict=True):
        places: dict[str, int] = {}
        for place, name in enumerate(names):
            if places.setdefault(name, place) != place:
                raise DemixError(
                    f"Expected a name of its own for each row of {words}, but rows {places[name]} "
                    f"and {place} (counted from 0) are both called {name!r}."
                )
    found = _matched(first, second)
    if not len(found.first):
        short = [[PurePosixPath(n.replace("\\", "/")).name for n in x] for x in (first, second)]
        if all(len(set(names)) == len(names) for names in short):
            found = _matched(*short)
    if not len(found.first):
        raise DemixError(
            f"Expected rows of the same names, but {called[0]} and {called[1]} share none: theirs "
            f"are {listed(first)} and {listed(second)}."
        )
    return found


def _lines(path: Path) -> list[str]:
    check_kind(path, "a text file")
    check_memory(20 * path.stat().st_size, f"Reading {path}", "give the names of fewer rows")
    problem = f"Expected names in UTF-8, but {path} cannot be read as such"
    with demix_errors(problem, "write it again"):
        text = path.read_text(encoding="utf-8-sig").rstrip()
    names = [line.strip() for line in text.splitlines()]
    if not names or "" in names:
        where = f"line {names.index('') + 1} is empty" if names else "it is empty"
        raise DemixError(f"Expected a name in every line of {path}, but {where}.")
    return names


def _matched(first: Sequence[str], second: Sequence[str]) -> Matched:
    places = {name: place for place, name in enumerate(second)}
    both = [place for place, name in enumerate(first) if name in places]
    known = set(first)
    return Matched(
        np.array(both, dtype=np.int64),
        np.array([places[first[place]] for place in both], dtype=np.int64),
        [name for name in first if name not in places],
        [name for name in second if name not in known],
    )
