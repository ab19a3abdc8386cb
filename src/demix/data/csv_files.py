"""Numbers from csv files."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, reason, shortened, warn
from demix._support.files import open_regular
from demix._support.memory import check_memory
from demix.data.formats import check_kind, find_column

_BEGINNING = 2**16
_HEADERS = ("auto", "yes", "no")
_MISSING = ("?", "-", "--", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing")


@dataclass(frozen=True)
class Layout:
    """How a csv file is written: its delimiter, its number of columns, and its header if any.

    ``doubtful`` are the cells of a first line that was taken for numbers but may be a header.
    """

    delimiter: str
    width: int
    names: tuple[str, ...] | None
    doubtful: tuple[str, ...] = ()

    def name(self, column: int) -> str:
        """Return what a message calls a column."""
        named = self.names is not None and self.names[column]
        return repr(shortened(named)) if named else f"{column} (counted from 0)"


def read_csv(
    path: Path,
    columns: Sequence[str | int] | None = None,
    dtype: type[np.generic] = np.float64,
    header: str = "auto",
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return the numbers ``(N, d)`` of a csv file and the names of their columns.

    Parameters
    ----------
    path : Path
        A file in UTF-8 whose cells are separated by commas, semicolons or tabs.
    columns : sequence of str or int, optional
        The columns to read: their names, or their numbers from 0 where there is no header.
    dtype : type, optional
        ``np.float64`` for any numbers, ``np.int64`` for the whole ones of pairs of rows.
    header : str, optional
        Whether the first line names the columns; see :func:`csv_layout`.
    """
    layout = csv_layout(path, header)
    chosen = _chosen(path, layout, columns)
    check_memory(
        2 * _lines(path) * len(chosen) * np.dtype(dtype).itemsize,
        f"Reading {path}",
        "save it as .npy, which is not read as a whole, or choose fewer columns",
    )
    try:
        # numpy's reader is written in C and keeps nothing but the numbers.
        numbers = np.loadtxt(
            _even_lines(path, layout),
            dtype=dtype,
            comments=None,
            delimiter=layout.delimiter,
            skiprows=_lines_above(path, layout),
            usecols=chosen,
            ndmin=2,
            quotechar='"',
        )
    except ValueError as error:
        raise _first_trouble(path, layout, chosen, dtype) or DemixError(
            f"Expected lines of {layout.width} numbers in {path}, but {reason(error)}."
        ) from error
    # Pairs of rows often begin with 0 and 1.
    if layout.doubtful and dtype is np.float64:
        shown = ", ".join(map(shortened, layout.doubtful[:3]))
        more = ", ..." if len(layout.doubtful) > 3 else ""
        warn(
            f"The first line of {path} ({shown}{more}) was read as numbers but may be a header; "
            "say header='yes' or 'no' (--header on the command line)."
        )
    names = layout.names
    return numbers, None if names is None else tuple(names[column] for column in chosen)


def _lines(path: Path) -> float:
    """Return roughly how many lines a file has, from its beginning."""
    with open_regular(path) as file:
        start = file.read(_BEGINNING)
    return path.stat().st_size * (start.count(b"\n") + 1) / max(1, len(start))


def _even_lines(path: Path, layout: Layout) -> Iterator[str]:
    """Go through the lines, and stop at one that numpy would read with its cells out of place."""
    gap = False
    with _text(path) as file:
        for number, line in enumerate(file, start=1):
            blank = not line.strip("\r\n")
            if '"' in line:
                # A quote that is not closed would take in all lines up to the next one.
                try:
                    reader = csv.reader([line], delimiter=layout.delimiter, strict=True)
                    cells = len(next(reader))
                except csv.Error as error:
                    raise ValueError(
                        f"line {number} has quotes that do not fit ({error})"
                    ) from None
            else:
                cells = line.count(layout.delimiter) + 1
            if cells != layout.width and not blank:
                raise ValueError(f"a line has {cells} cells")
            if gap and not blank:
                raise ValueError("a line is blank")
            gap = blank and layout.width == 1
            yield line


def csv_layout(path: Path, header: str = "auto") -> Layout:
    """Return how a csv file is written, from its first two lines.

    Parameters
    ----------
    path : Path
        The file.
    header : str, optional
        ``"yes"`` if the first line names the columns, ``"no"`` if it does not. With ``"auto"`` it
        does if most of its cells are not numbers, or if it counts three columns or more from 0
        above numbers that are not all whole, as pandas writes for columns without names.
    """
    check_header(header)
    delimiter = csv_delimiter(path)
    first, *rest = [cells for _, cells in itertools.islice(csv_lines(path, delimiter), 2)]
    names = tuple(cell.strip() for cell in first)
    second = rest[0] if rest else None
    if header == "no" or (header == "auto" and not _is_header(names, second)):
        doubtful = header == "auto" and _may_be_header(names, second)
        return Layout(delimiter, len(first), None, names if doubtful else ())
    if not rest:
        raise DemixError(f"Expected lines of numbers, but {path} has only a header.")
    # numpy.savetxt marks its header so.
    return Layout(delimiter, len(first), (names[0].removeprefix("#").strip(), *names[1:]))


def check_header(header: str) -> None:
    """Refuse what does not say whether a csv file has a header."""
    if header not in _HEADERS:
        raise DemixError(f"Expected header to be 'auto', 'yes' or 'no', but got {header!r}.")


def csv_delimiter(path: Path) -> str:
    """Return what separates the cells of a file: a tab, a semicolon or a comma."""
    check_kind(path, "a text file")
    with _text(path) as file:
        start = next((line for line in file if line.strip("\r\n")), "")
    if not start:
        raise DemixError(f"Expected a csv file with lines, but {path} has none.")
    return next((mark for mark in "\t;" if mark in start), ",")


def csv_lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Go through the cells of all lines that are not blank, with the number of the line from 1.

    In a file of one column a blank line is a missing value, which is refused, but for those at the
    end.
    """
    width = blank = 0
    with _text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            for cells in reader:
                width = width or len(cells)
                if not cells:
                    blank = blank or reader.line_num
                elif blank and width == 1:
                    raise DemixError(
                        f"Expected a value in every line of {path}, which has one column, but line "
                        f"{blank} is blank; fill it in or remove it."
                    )
                else:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise DemixError(
                f"Expected a csv file, but line {reader.line_num} of {path} cannot be read as "
                f"one: {reason(error)}."
            ) from error


def _is_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    # What stands for a number, or for a missing one, is no name: such a line is refused as numbers.
    numbers = sum(
        reads_as(float, cell) or reads_as(_in_any_base, cell) or cell.lower() in _MISSING
        for cell in first
    )
    if 2 * numbers < len(first):
        return True
    # One or two columns of data may well begin at 0 and 1, as time and a cosine do.
    counted = len(first) > 2 and list(first) == [str(column) for column in range(len(first))]
    return counted and second is not None and not all(reads_as(int, cell) for cell in second)


def _in_any_base(cell: str) -> int:
    return int(cell, 0)


def _may_be_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Whether a line of numbers may be names, such as years: all differ, and go up or stand out."""
    if len(first) < 2 or not all(reads_as(int, cell) for cell in first):
        return False
    steps = {int(right) - int(left) for left, right in itertools.pairwise(first)}
    alike = len(set(map(int, first))) < len(first)
    return not alike and (steps == {1} or not all(reads_as(int, cell) for cell in second or ()))


def _chosen(path: Path, layout: Layout, columns: Sequence[str | int] | None) -> list[int]:
    """Return the numbers of the columns to read."""
    names = layout.names
    if columns is not None:
        known = [str(column) for column in range(layout.width)] if names is None else list(names)
        return [find_column(str(column), known, path) for column in columns]
    if names is not None and "" in names:
        raise DemixError(
            f"Expected a name for every column of {path}, but column {names.index('')} (counted "
            "from 0) has none; name it, write frames with to_csv(index=False), or choose columns."
        )
    return list(range(layout.width))


def _first_trouble(
    path: Path, layout: Layout, chosen: Sequence[int], dtype: type[np.generic]
) -> DemixError | None:
    """Return what is wrong in the first line that numpy could not read."""
    whole = issubclass(dtype, np.integer)
    number: Callable[[str], Any] = int if whole else float
    expected = "whole numbers" if whole else "numbers"
    below = 0 if layout.names is None else 1
    for line, cells in itertools.islice(csv_lines(path, layout.delimiter), below, None):
        if len(cells) != layout.width:
            return DemixError(
                f"Expected {layout.width} cells in every line of {path}, but line {line} has "
                f"{len(cells)}."
            )
        for column in chosen:
            cell = cells[column]
            if not reads_as(number, cell):
                found = f"holds {shortened(cell)!r}" if cell.strip() else "is empty"
                comma = reads_as(float, cell.replace(",", ".")) and "," in cell
                advice = "write a decimal point" if comma else "mend it or choose other columns"
                return DemixError(
                    f"Expected {expected}, but line {line} of {path} {found} in column "
                    f"{layout.name(column)}; {advice}."
                )
    return None


def reads_as(number: Callable[[str], Any], cell: str) -> bool:
    """Whether a cell is a number of a type, ``int`` or ``float``."""
    try:
        number(cell)
    except ValueError:
        return False
    # Python reads 1_000, numpy does not.
    return "_" not in cell


def _lines_above(path: Path, layout: Layout) -> int:
    """Return how many lines stand above the numbers; a header may come after blank ones."""
    if layout.names is None:
        return 0
    return next(csv_lines(path, layout.delimiter))[0]


@contextmanager
def _text(path: Path) -> Iterator[Any]:
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise DemixError(
            f"Expected a csv file in UTF-8, but {path} is written otherwise ({error.reason}); "
            "save it as UTF-8."
        ) from error
