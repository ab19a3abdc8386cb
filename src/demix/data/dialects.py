"""How a csv file is written: separator, encoding, decimal mark and marks of thousands."""

import csv
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from io import StringIO
from itertools import islice, zip_longest

_SEPARATORS = {"\t": "tab", ";": "';'", ",": "','"}
_SWAP = str.maketrans(".,", ",.")
# A number with a comma or a point, also with points in its thousands; no date is one.
_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)([.,]\d*)?(e[+-]?\d+)?", re.IGNORECASE)
# With a decimal point: thousands, clear ones (with a point or a second comma), and what shows that
# a point is no mark of thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_CLEAR = re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})")
_DOT = re.compile(rf"[+-]?(?![1-9]\d{{0,2}}\.\d{{3}}$)\d*\.\d+(e[+-]?\d+)?|{_CLEAR.pattern}", re.I)
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
        words = [_SEPARATORS[self.separator], *["decimal comma"] * self.comma]
        words += ["marks of thousands"] * self.thousands
        return ", ".join([*words, *[self.encoding] * (self.encoding != "utf-8-sig")])

    def plain(self, cells: list[str]) -> list[str]:
        """Return a line whose numbers have a decimal point, and no mark of thousands."""
        # What is not clear keeps a comma or two points, which no reader of numbers takes.
        if self.comma or self.thousands:
            for column in self.columns:
                cells[column] = self._plain(cells[column])
        return cells

    def written(self, cell: str) -> str:
        """Return a cell that is not clear as it is written."""
        return cell.translate(_SWAP) if self.comma and _NUMBER.fullmatch(cell.strip()) else cell

    def _plain(self, cell: str) -> str:
        if self.comma:
            if "." not in cell:
                return cell.replace(",", ".")
            if not _NUMBER.fullmatch(cell.strip()):
                return cell
            cell = cell.translate(_SWAP)
        marked = self.thousands and _THOUSANDS.fullmatch(cell.strip())
        return cell.replace(",", "") if marked else cell


def dialect_of(beginning: bytes, whole: bool) -> Dialect:
    """Return how a csv file is written that begins so.

    It is in UTF-8 or else in Windows-1252. The separator is the first of tab, semicolon and comma
    that cuts each line into equally many cells. Between tabs and semicolons, a comma is the decimal
    mark if columns of numbers show it and none shows a point. A mark of thousands is clear if it
    stands twice in a number, or together with the decimal mark; then that of ``1,234`` is, too.
    """
    encoding = "utf-8-sig"
    try:
        text = getincrementaldecoder(encoding)().decode(beginning)
    except UnicodeDecodeError:
        encoding = "Windows-1252"
        text = beginning.decode(encoding, errors="replace")
    lines = [line for line in StringIO(text, newline="") if line.strip("\r\n")]
    lines = lines if whole else lines[:-1] or lines
    tables = {mark: list(csv.reader(lines, delimiter=mark)) for mark in _SEPARATORS}
    widths = {mark: {len(row) for row in tables[mark]} for mark in tables}
    even = [mark for mark in tables if len(widths[mark]) == 1 and widths[mark] != {1}]
    # Lines that are short or long are told later.
    separator = [*even, *(mark for mark in tables if mark in "".join(lines[:1])), ","][0]
    table = [[cell.strip() for cell in row] for row in tables[separator]] or [[]]
    rows = table if all(map(_may_be_number, table[0])) else table[1:] or table
    columns, marked = [], list[str]()
    for column, cells in enumerate(islice(zip_longest(*rows, fillvalue=""), len(table[0]))):
        if all(map(_may_be_number, cells)) and re.search(r"\d", "".join(cells)):
            columns.append(column)
            marked += [cell for cell in cells if "," in cell or "." in cell]
    swapped = [cell.translate(_SWAP) for cell in marked]
    shown = any(map(_DOT.fullmatch, swapped)) and not any(map(_DOT.fullmatch, marked))
    comma = separator != "," and shown
    thousands = any(map(_CLEAR.fullmatch, swapped if comma else marked))
    return Dialect(separator, encoding, comma, thousands, tuple(columns))


def _may_be_number(cell: str) -> bool:
    """Whether a cell is a number in either notation, or a word such as NA."""
    word = not re.search(r"[\d,]", cell)
    return word or bool(_NUMBER.fullmatch(cell) or _THOUSANDS.fullmatch(cell))
