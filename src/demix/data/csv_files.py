"""Numbers and text from csv files.

They are read with the standard library: pyarrow is no faster once lines are checked, takes a
gigabyte of address space, and reads on over quotes that are not closed.
"""

import bz2
import csv
import gzip
import itertools
import lzma
import math
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from demix._support.errors import DemixError, listed, reason, shortened, warn
from demix._support.files import open_regular
from demix._support.memory import check_memory
from demix.data.dialects import DOUBTFUL, Dialect, dialect_of
from demix.data.formats import LONGEST_CELL, Which, check_kind, check_names, find_column, unreadable

Line = tuple[int, list[str]]
"""The number of a line, from 1, and its cells."""

_MOST_CELLS = 250_000  # of a line; while it is read, each takes up to 200 bytes
_BEGINNING = _AT_ONCE = 2**16
_LONGEST_LINE = 2**26
_UNPACKED: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_MOST_GROWTH = 500  # times that a packed file may grow; tables of measurements do a tenth of it
_MISSING = (
    *("?", "-", "--", ".", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "missing"),
    *("#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!", "#spill!", "#calc!"),
)


def read_csv(
    path: Path, columns: Which = None, *, header: str = "auto", whole: bool = False
) -> tuple[np.ndarray, tuple[str, ...] | None, str]:
    """Return numbers ``(N, d)``, names of columns and the dialect; see :func:`read_data`."""
    numbers = array("q" if whole else "d")  # of int64 or float64
    number: Callable[[str], Any] = _int64 if whole else float
    with _opened(path) as (lines, count, dialect):
        start = list(itertools.islice(lines, 2))
        names = _header(path, header, start)
        chosen = _chosen(path, names, len(start[0][1]), columns)
        if names is not None and header == "auto" and columns is None:
            check_guess(start[0][1], start[1][1], path)
        advice = "save it as .npy, which is not read as a whole, or choose fewer columns"
        check_memory(2 * 8 * count * len(chosen), f"Reading {path}", advice)
        room = max(_AT_ONCE, count * len(chosen))
        for line, cells in itertools.chain(start[0 if names is None else 1 :], lines):
            found = cells if columns is None else [cells[column] for column in chosen]
            if len(numbers) > room:  # more than the size of a packed file promised
                check_memory(8 * room, f"Reading {path}", advice)
                room *= 2
            try:
                if "_" in "".join(found):
                    raise ValueError
                numbers.extend(map(number, found))
            except ValueError:
                place = next(i for i, cell in enumerate(found) if not reads_as(number, cell))
                cell = dialect.written(found[place])
                raise no_number(path, line, cell, chosen[place], names, whole) from None
    table = np.frombuffer(numbers, np.int64 if whole else np.float64).reshape(-1, len(chosen))
    if names is None and header == "auto":
        _warn_of_header(path, table, *(cells for _, cells in start))
    if names is None and columns is not None:  # so that a model knows which it was fitted to
        return table, tuple(map(str, chosen)), str(dialect)
    return table, names and tuple(names[i] for i in chosen), str(dialect)


def csv_names(path: Path, header: str = "auto") -> tuple[str, ...] | None:
    """Return the names of the columns of a csv file; None if its first line names none."""
    return _header(path, header, list(itertools.islice(csv_lines(path), 2)))


def csv_cells(path: Path, column: str | None, what: str) -> list[str]:
    """Return one column of a csv file as text; ``what`` is the word for a cell in messages."""
    # The first line of a single column is a header if it is no number and stands nowhere below.
    lines = csv_lines(path)
    first = [cell.strip() for cell in next(lines)[1]]
    place = find_column(column, first, path)
    cells: list[str] = []
    for line, found in lines:
        if len(cells) % _AT_ONCE == 0:
            check_memory(100 * _AT_ONCE, f"Reading {path}", f"give fewer {what}s")
        cells.append(found[place].strip())
        if not cells[-1]:
            raise DemixError(f"Expected a {what} in each line, but line {line} of {path} has none.")
    if column is None and (_is_value(first[0]) or first[0] in cells):
        cells.insert(0, first[0])
    if not cells:
        raise DemixError(f"Expected {what}s, but {path} has only a header.")
    return cells


def csv_lines(path: Path) -> Iterator[Line]:
    """Yield all lines that are not blank, each of as many cells, none of them a long text."""
    with _opened(path) as (lines, *_):
        for line, cells in lines:
            if max(map(len, cells)) > LONGEST_CELL:
                raise DemixError(
                    f"Expected cells of at most {LONGEST_CELL} letters, but line {line} of {path} "
                    "has a longer one; shorten it."
                )
            yield line, cells


def check_header(header: str) -> None:
    """Raise :class:`DemixError` unless ``header`` is ``"auto"``, ``"yes"`` or ``"no"``."""
    if header not in ("auto", "yes", "no"):
        raise DemixError(f"Expected header to be 'auto', 'yes' or 'no', but got {header!r}.")


def check_guess(first: Sequence[str], second: Sequence[str], path: Path) -> None:
    """Raise if a line that was taken for names may as well be numbers, some of which failed."""
    names = [cell.strip() for cell in first]
    kept = [reads_as(float, a) and reads_as(float, b) for a, b in zip(names, second, strict=True)]
    failed = any(name[:1] == "#" and name.lower() in _MISSING for name in names)
    if failed or len(set(names)) < len(names) or (any(kept) and not _all_whole(names)):
        raise DemixError(
            f"Expected names of columns, each once, or numbers in the first line of {path}, but it "
            f"holds {listed([*map(shortened, names)])}; mend it, or say header='yes' or 'no' "
            "(--header)."
        )


def refuse_missing(words: Iterable[str], what: str) -> None:
    """Raise if text marks a value as missing, as R and pandas write it; it would be a class."""
    for row, word in enumerate(words):
        if word.strip().lower() in ("", *_MISSING):
            raise DemixError(
                f"Expected {what} for each row, but that of row {row} (counted from 0) is missing "
                f"({word.strip()!r}); leave such rows out, or use another word if it is a class."
            )


def check_words(values: Any, what: str) -> None:
    """Raise unless all values are text and none is missing; as text, 1 and "1" would merge."""
    # Among words, an array would make a word of what is missing, or no text.
    listed = isinstance(values, list | tuple)
    cells = np.asarray(values, dtype=object if listed else None).ravel()
    refuse_missing(map(str, cells), what)
    other = next((cell for cell in cells if not isinstance(cell, str)), "")
    if other != "":
        raise DemixError(
            f"Unknown {what.removeprefix('a ')} type: expected all text or all numbers, but got "
            f"objects such as {shortened(repr(other))}; convert them, e.g. with .astype(str)."
        )


def reads_as(number: Callable[[str], Any], cell: str) -> bool:
    """Whether a cell is a number of a type, ``int`` or ``float``; 1_000 is none."""
    try:
        number(cell)
    except ValueError:
        return False
    return "_" not in cell


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Iterator[Line], float, Dialect]]:
    """Give the lines of a file, roughly how many there are, and how they are written."""
    unpacked = _UNPACKED.get(path.suffix.lower())
    try:
        with open_regular(path) as packed, unpacked(packed) if unpacked else packed as raw:
            beginning = raw.read(_BEGINNING)
            check_kind(path, "a text file", beginning)
            size = path.stat().st_size
            count = size * (beginning.count(b"\n") + 1) / max(packed.tell(), 1)
            raw.seek(0)
            dialect = dialect_of(beginning, len(beginning) < _BEGINNING)
            most = _MOST_GROWTH * (size + 4096) if unpacked else math.inf
            with TextIOWrapper(cast(BinaryIO, raw), encoding=dialect.encoding, newline="") as file:
                lines = _bounded(file, path, dialect.separator, most)
                yield _lines(lines, path, dialect), count, dialect
    except UnicodeDecodeError as error:
        raise DemixError(
            f"Expected a csv file in UTF-8 or Windows-1252, but {path} is written otherwise "
            f"({error.reason}); save it as UTF-8."
        ) from error
    except (OSError, UnicodeError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise unreadable(path, error) from error


def _bounded(file: TextIOWrapper, path: Path, separator: str, most: float) -> Iterator[str]:
    """Yield lines of text; raise before one, or all of a packed file, take the memory."""
    seen = 0
    while text := file.readline(_LONGEST_LINE):
        if len(text) == _LONGEST_LINE or text.count(separator) >= _MOST_CELLS:
            raise DemixError(
                f"Expected at most {_MOST_CELLS} cells in a line and less than {_LONGEST_LINE} "
                f"letters, but {path} has a line of more; write a row in each line, or save it as "
                ".npy."
            )
        seen += len(text)
        if seen > most:
            raise DemixError(
                f"Expected a packed file that grows at most {_MOST_GROWTH} times, but {path} grows "
                "further; unpack it first if it is meant."
            )
        yield text


def _lines(lines: Iterator[str], path: Path, dialect: Dialect) -> Iterator[Line]:
    """Yield all lines that are not blank, each of as many cells."""
    # Quotes around only a part of a cell, and around more than one line, are refused: one that is
    # not closed would take in all lines up to the next one.
    reader = csv.reader(lines, delimiter=dialect.separator, strict=True)
    width, blank, line = 0, 0, 1
    try:
        for cells in reader:
            if reader.line_num > line:
                raise csv.Error("they are around several lines")
            width = width or len(cells)
            if not cells:
                blank = blank or line
            elif blank and width == 1:
                raise DemixError(
                    f"Expected a value in every line of {path}, which has one column, but line "
                    f"{blank} is blank; fill it in or remove it."
                )
            elif len(cells) != width:
                raise DemixError(
                    f"Expected {width} cells in every line of {path}, but line {line} has "
                    f"{len(cells)}."
                )
            else:
                yield line, dialect.plain(cells)
            line += 1
    except csv.Error as error:
        raise DemixError(
            f"Expected a csv file, but in {path} line {line} has quotes that do not fit, or a cell "
            f"that is too long ({reason(error)}); mend it."
        ) from error
    if not width:
        raise DemixError(f"Expected a csv file with lines, but {path} has none.")


def _header(path: Path, header: str, start: Sequence[Line]) -> tuple[str, ...] | None:
    """Return the names in the first of two lines, None if it has none."""
    check_header(header)
    first, *others = ([cell.strip() for cell in cells] for _, cells in start)
    if header == "no" or (header == "auto" and not _is_header(first, others)):
        return None
    if not others:
        raise DemixError(f"Expected lines of numbers, but {path} has only a header.")
    check_names(first, path)
    return (first[0].removeprefix("#").strip(), *first[1:])  # numpy.savetxt marks its header so


def _is_header(first: list[str], others: Sequence[Sequence[str]]) -> bool:
    # Numbers and marks of missing ones are no names: such a line is refused as numbers.
    if 2 * sum(map(_is_value, first)) < len(first):
        return True
    # One or two columns of data may well begin at 0 and 1, as time and a cosine do.
    counted = len(first) > 2 and first == [str(column) for column in range(len(first))]
    return counted and any(not _all_whole(cells) for cells in others)


def _is_value(cell: str) -> bool:
    whole = reads_as(lambda text: int(text, 0), cell)
    return whole or reads_as(float, cell.replace(",", "")) or cell.lower() in _MISSING


def _all_whole(cells: Sequence[str]) -> bool:
    return all(reads_as(int, cell) for cell in cells)


def _warn_of_header(
    path: Path, table: np.ndarray, first: Sequence[str], second: Sequence[str] = ()
) -> None:
    """Warn of a line of numbers that may be names, such as years: they go up, or stand out."""
    others, names = table[1:], list(map(int, first)) if _all_whole(first) else []
    if not names:
        # Wavelengths go up or down, which not all rows do, and no other number lies among them.
        rises, falls = table[:, 1:] > table[:, :-1], table[0, 1:] < table[0, :-1]
        ordered = len(falls) > 1 and (rises[0].all() or falls.all()) and (rises != rises[0]).any()
        doubtful = bool(ordered and ((others < table[0].min()) | (others > table[0].max())).all())
    elif others.dtype == np.int64:  # pairs of neighbours begin so, too
        doubtful = names == [0, 1] and bool((others[:1] > 3).any())
    elif len(names) == 1:
        doubtful = others.size > 0 and bool((others != np.floor(others)).all())
    else:
        doubtful = names == [*range(names[0], names[0] + len(names))] or not _all_whole(second)
    if doubtful and len(set(names)) == len(names):
        shown = ", ".join(shortened(cell.strip()) for cell in first[:3])
        more = ", ..." if len(first) > 3 else ""
        warn(
            f"The first line of {path} ({shown}{more}) was read as numbers but may be a header; "
            "remove it, or say header='yes' or 'no' (--header on the command line)."
        )


def _chosen(path: Path, names: Sequence[str] | None, width: int, columns: Which) -> list[int]:
    """Return the numbers of the columns to read."""
    if names is not None and "" in names and (columns is None or "" in columns):
        raise DemixError(
            f"Expected a name for every column of {path}, but column {names.index('')} (counted "
            "from 0) has none; name it, write frames with to_csv(index=False), or choose columns."
        )
    if columns is None:
        return list(range(width))
    known = list(map(str, range(width))) if names is None else list(names)
    return [find_column(str(column), known, path) for column in columns]


def _int64(cell: str) -> int:
    if not -(2**63) <= int(cell) < 2**63:
        raise ValueError
    return int(cell)


def no_number(
    path: Path, line: int, cell: str, column: int, names: Sequence[str] | None, whole: bool
) -> DemixError:
    """Return the error of a cell that is no number."""
    found = f"holds {shortened(cell)!r}" if cell.strip() else "is empty"
    marked = reads_as(float, cell.replace(",", "")) and not whole
    named = names is not None and names[column]
    name = repr(shortened(named)) if named else f"{column} (counted from 0)"
    advice = "; mend it or choose other columns"
    if marked:
        doubt = ", a thousand or a fraction" if DOUBTFUL.fullmatch(cell.strip()) else ""
        advice = f"{doubt}; write numbers with a decimal mark alone, the same in all lines"
    return DemixError(
        f"Expected {'whole numbers' if whole else 'numbers'}, but line {line} of {path} {found} in "
        f"column {name}{advice}."
    )
