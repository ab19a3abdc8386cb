"""What a file is, by its first bytes."""

from collections.abc import Sequence
from pathlib import Path

from demix._support.errors import DemixError, reason, shortened
from demix._support.files import is_there, open_regular

_BEGINNINGS = {
    b"\x93NUMPY": "a numpy array (.npy)",
    b"PK\x03\x04": "a zip archive (.npz)",
    b"PAR1": "a parquet file",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip archive",
    b"\xff\xfe": "a text file in UTF-16",
}
_EMPTY = "an empty file"
_LOOKED_AT = 4096
CSV, TABLES = (".csv", ".tsv"), (".csv", ".tsv", ".parquet")
LONGEST_CELL = 1000
"""The most letters of a name, label or category."""
Which = Sequence[str | int] | None
"""Columns to read, by name or by number; all if there are none."""
_UNWRITTEN = set(range(32)) - set(b"\t\n\f\r")  # control characters no text holds


def looks_like(path: Path) -> str:
    """Return what the first bytes of a file say it is."""
    try:
        with open_regular(path) as file:
            return _kind_of(file.read(_LOOKED_AT))
    except (OSError, UnicodeError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> DemixError:
    """Return the error of a file that cannot be read."""
    return DemixError(f"Expected a file that can be read, but {path} cannot: {reason(error)}.")


def _kind_of(start: bytes) -> str:
    if not start:
        return _EMPTY
    for beginning, kind in _BEGINNINGS.items():
        if start.startswith(beginning):
            return kind
    return "a binary file of another kind" if _UNWRITTEN & set(start) else "a text file"


def check_kind(path: Path, kind: str, start: bytes | None = None) -> None:
    """Raise if a file, or its beginning ``start``, does not look like what its name says it is."""
    found = looks_like(path) if start is None else _kind_of(start[:_LOOKED_AT])
    if found == _EMPTY:
        raise DemixError(f"Expected {kind}, but {path} is empty; write it again.")
    if found != kind:
        raise DemixError(
            f"Expected {kind}, as its name says, but {path} looks like {found}; rename it or "
            "write it again."
        )


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without that of packing: ``.csv.gz`` is a csv."""
    suffix, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if suffix in (".gz", ".bz2", ".xz") and inner in CSV else suffix


def known_suffix(path: Path, expected: str, *known: str) -> str:
    """Return the suffix of a file that exists; raise if it is not one of the known ones."""
    suffix, there = suffix_of(path), is_there(path)
    if not there or suffix not in known:
        found = "is neither" if there else "is no such file"
        raise DemixError(f"Expected {expected} file, but {path} {found}.")
    return suffix


def choose_array(names: Sequence[str], key: str | None, path: Path) -> str:
    """Return the name of the array to read; raise if it is not clear which."""
    if key in names or (key is None and len(names) == 1):
        return names[0] if key is None else key
    found = ", ".join(map(shortened, names[:10])) or "none"
    wanted = "one array, or a key that says which" if key is None else f"an array {key!r}"
    raise DemixError(f"Expected {wanted}, but the arrays in {path} are: {found}.")


def check_names(names: Sequence[str], path: Path) -> None:
    """Raise :class:`DemixError` if a column has a name too long for a model to keep."""
    longest = max(map(len, names), default=0)
    if longest > LONGEST_CELL:
        raise DemixError(
            f"Expected names of columns of at most {LONGEST_CELL} letters, but {path} has one of "
            f"{longest}; shorten it."
        )


def find_column(column: str | None, known: Sequence[str], path: Path) -> int:
    """Return the place of a column, by default the only one; raise unless there is exactly one."""
    count = len(known) if column is None else known.count(column)
    if count != 1:
        names = ", ".join(map(shortened, known[:10])) or "none"
        name = "" if column is None else f" {shortened(column)!r}"
        came = f"there are {count}" if count else "it is not there"
        raise DemixError(f"Expected one column{name} in {path}, but {came}; choose one of {names}.")
    return 0 if column is None else known.index(column)
