"""How a csv file is written: separator, encoding, decimal mark and marks of thousands."""

import csv
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from itertools import islice, zip_longest

_MARKS = {"\t": "tab", ";": "';'", ",": "','"}
_SWAP = str.maketrans(".,", ",.")
# A number with a decimal comma or a point, also with points in its thousands; no date is one.
_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)([.,]\d*)?(e[+-]?\d+)?", re.IGNORECASE)
# With a decimal point: a fraction that is no thousand, and thousands, which are sure if there is a
# point as well or a second comma.
_FRACTION = re.compile(r"[+-]?(?![1-9]\d{0,2}\.\d{3}$)\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_SURE = re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})")
DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""A thousand or a fraction."""


@dataclass(frozen=True)
class Dialect:
    """How a csv file is written; ``columns`` are those that hold numbers."""

    separator: str
    encoding: str
    comma: bool
    thousands: bool
    columns: tuple[int, ...]

    def __str__(self) -> str:
        words = [_MARKS[self.separator], *["decimal comma"] * self.comma]
        words += ["marks of thousands"] * self.thousands
        return ", ".join([*words, *[self.encoding] * (self.encoding != "utf-8-sig")])

    def plain(self, cells: list[str]) -> list[str]:
        """Return a line whose numbers have a decimal point, and no mark of thousands."""
        text = "".join(cells)
        if "," in text or (self.comma and "." in text):
            for column in self.columns:
                cells[column] = self._plain(cells[column])
        return cells

    def swapped(self, cell: str) -> str:
        """Return a number with its commas as points and its points as commas."""
        # What is not clear ends with a comma, which no reader of numbers takes.
        return cell.translate(_SWAP) if self.comma and _NUMBER.fullmatch(cell.strip()) else cell

    def _plain(self, cell: str) -> str:
        plain, sure = self.swapped(cell), _THOUSANDS if self.thousands else _SURE
        marked = "," in plain and (plain != cell or not self.comma)
        return plain.replace(",", "") if marked and sure.fullmatch(plain.strip()) else plain


def dialect_of(beginning: bytes, whole: bool) -> Dialect:
    """Return how a csv file is written that begins so.

    It is in UTF-8 or else in Windows-1252. The separator is the first of tab, semicolon and comma
    that cuts each line into equally many cells. Between tabs and semicolons, a comma is the decimal
    mark if columns of numbers show it and none shows a point. A mark of thousands is clear if it
    stands twice in a number, or together with the decimal mark; then ``1,234`` is one, too.
    """
    encoding = "utf-8-sig"
    try:
        text = getincrementaldecoder(encoding)().decode(beginning)
    except UnicodeDecodeError:
        encoding = "cp1252"
        text = beginning.decode(encoding, errors="replace")
    lines = [line for line in StringIO(text, newline="") if line.strip("\r\n")]
    lines = lines if whole else lines[:-1] or lines
    tables = {mark: _table(lines, mark) for mark in _MARKS}
    widths = {mark: {len(row) for row in table} for mark, table in tables.items()}
    fits = [mark for mark in _MARKS if len(widths[mark]) == 1 and widths[mark] != {1}]
    fits += [mark for mark in _MARKS if mark in "".join(lines[:1])]
    separator = [*fits, ","][0]
    table = [[cell.strip() for cell in row] for row in tables[separator]] or [[]]
    rows = table if all(map(_may_be_number, table[0])) else table[1:] or table
    columns, marked = [], list[str]()
    cut = islice(zip_longest(*rows, fillvalue=""), len(table[0]))
    for column, texts in enumerate(cut):
        if all(map(_may_be_number, texts)):
            columns.append(column)
            marked += [cell for cell in texts if "," in cell or "." in cell]
    swapped = [cell.translate(_SWAP) for cell in marked]
    comma = separator != "," and _shows_point(swapped) and not _shows_point(marked)
    thousands = any(map(_SURE.fullmatch, swapped if comma else marked))
    return Dialect(separator, encoding, comma, thousands, tuple(columns))


def _table(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:  # the reader of all lines says which
        return []


def _may_be_number(cell: str) -> bool:
    """Whether a cell is a number in either notation, or a word such as NA."""
    return not re.search(r"\d", cell) or any(
        pattern.fullmatch(cell) for pattern in (_NUMBER, _THOUSANDS)
    )


def _shows_point(cells: Iterable[str]) -> bool:
    """Whether a point is a decimal mark in some number."""
    return any(_FRACTION.fullmatch(cell) or _SURE.fullmatch(cell) for cell in cells)
