"""Known factors from files: numbers, and in tables text as well."""

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError, shortened
from demix._support.memory import check_memory
from demix.data.csv_files import check_guess, check_header, csv_lines, no_number, read_csv, reads_as
from demix.data.data import Data
from demix.data.npy_files import read_npy
from demix.data.reading import read_data

_BEGIN, _MOST = 1000, 2**53
FEW = 20
"""Most different values of whole numbers that are taken for categories."""


@dataclass(frozen=True, eq=False)
class KnownFactors:
    """Factors ``(N, n)``, numbers or columns of numbers or text, and names if there are any."""

    values: np.ndarray
    names: tuple[str, ...] | None = None


def read_factors(path: str | Path, *, header: str = "auto") -> KnownFactors:
    r"""Read factors of both kinds, numbers and categories.

    Parameters
    ----------
    path : str or Path
        Any file that :func:`read_data` opens; also an ``.npy`` file of text, and a ``.parquet``,
        ``.csv`` or ``.tsv`` file some or all of whose columns are text.
    header : "auto", "yes" or "no"
        Whether the first line of a csv file names its columns. By default it does as in
        :func:`read_data`; above columns of text, if it holds text above numbers, or nothing that
        stands below.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from demix import read_factors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "factors.csv"
    ...     _ = path.write_text("size,shape\n0.5,cube\n0.25,ball\n")
    ...     factors = read_factors(path)
    >>> factors.values.tolist(), factors.names
    ([[0.5, 'cube'], [0.25, 'ball']], ('size', 'shape'))
    """
    path = Path(path)
    check_header(header)
    suffix = path.suffix.lower() if os.path.isfile(path) else None
    if suffix == ".npy" and (text := read_npy(path)).dtype.kind == "U":
        found = KnownFactors(np.array(text))
    elif suffix in (".csv", ".tsv"):
        found = _csv_with_text(path, header)
    elif suffix == ".parquet":
        found = _parquet_with_text(path)
    else:
        data = read_data(path, header=header)
        found = KnownFactors(data.array(exact=True), data.names)
    if 0 in (shape := found.values.shape):
        raise DemixError(f"Expected at least one row and column, but {path} has shape {shape}.")
    few, known = [], dict[tuple[int, float], str]()
    for place, column in enumerate(found.values.T if found.values.ndim == 2 else ()):
        size = np.abs([0.5] if isinstance(column[0], str) else column.astype(float))
        few += [place] if are_few_whole_numbers(size) else []
        if ((size >= _MOST) & (size < np.inf)).any():
            raise DemixError(
                f"Expected factors below 2^53, as whole numbers merge from there on, but {path} "
                "has larger ones; begin names with a letter, and give quantities in a larger unit."
            )
    # Numbers that are categories, and are read as one though they may be two.
    lines = csv_lines(path) if few and suffix in (".csv", ".tsv") else ()
    for _, cells in itertools.islice(lines, found.names is not None, None):
        for place in few:
            cell = cells[place].strip().lstrip("+-")  # zeros may have either sign
            if (other := known.setdefault((place, float(cell)), cell)) != cell:
                raise DemixError(
                    f"Expected one spelling of a category, but {path} has {shortened(other)} and "
                    f"{shortened(cell)}; write both alike, or begin them with a letter."
                )
    return found


def are_few_whole_numbers(column: np.ndarray) -> bool:
    """Return whether numbers ``(N,)`` are whole and take at most 20 different values."""
    # Most columns of other numbers show it in their first rows.
    few = len(np.unique(column[: 50 * FEW])) <= FEW and len(np.unique(column)) <= FEW
    return few and bool((column == np.round(column)).all())


def check_order(rows: Data, known: KnownFactors, path: Path) -> None:
    """Raise if rows and factors hold one column of different numbers, each in another order."""
    own, others = rows.names or (), known.names or ()
    for name in (name for name in others if name in own):
        column, other = rows.rows[:][:, own.index(name)], known.values[:, others.index(name)]
        if isinstance(other[0], str) or len(np.unique(other)) < len(rows):
            continue
        other = other.astype(column.dtype)
        if np.array_equal(np.sort(column), np.sort(other)) and (column != other).any():
            raise DemixError(
                f"{rows.source} and {path} hold the same numbers in column {name!r}, but in "
                f"another order; sort both by it, or join them with demix probe --join {name}."
            )


def _parquet_with_text(path: Path) -> KnownFactors:
    """Read a parquet file whose columns may be text."""
    from demix.data.parquet_files import parquet_cells, parquet_text, read_parquet

    is_text = parquet_text(path)
    if not any(is_text.values()):
        return KnownFactors(*read_parquet(path, None))
    numbers = [name for name, text in is_text.items() if not text]
    rows = dict(zip(numbers, read_parquet(path, numbers)[0].T, strict=True)) if numbers else {}
    columns = [parquet_cells(path, name) if text else rows[name] for name, text in is_text.items()]
    return KnownFactors(np.array(columns, dtype=object).T, tuple(is_text))


def _csv_with_text(path: Path, header: str) -> KnownFactors:
    """Read a csv file whose columns may be text, which shows among the first lines."""
    text, letters, count = False, 0, 0  # most files are numbers, which take less memory
    for _, cells in itertools.islice(csv_lines(path), 1, _BEGIN):
        text = text or not all(reads_as(float, cell) for cell in cells)
        letters, count = letters + sum(map(len, cells)), count + len(cells)
    if not text:
        return KnownFactors(*read_csv(path, header=header)[:2])
    # A short cell takes about 250 bytes, as a string and in lists.
    needed = path.stat().st_size * (2 + 250 / (letters / count + 1))
    check_memory(needed, f"Reading text of {path}", "take fewer rows")
    lines, rows = zip(*csv_lines(path), strict=True)
    columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
    is_number = [[reads_as(float, cell) for cell in column] for column in columns]
    numeric = [all(number[1:]) for number in is_number]
    if all(numeric):
        return KnownFactors(*read_csv(path, header=header)[:2])
    if header != "auto":
        named = header == "yes"
    elif any(numeric):
        named = any(all(number[1:]) and not number[0] for number in is_number)
    else:
        named = not any(column[0] in column[1:] for column in columns)
    if named and header == "auto":
        check_guess(rows[0], rows[1], path)
    start, values = 1 if named else 0, []
    for place, column in enumerate(columns):
        cells, kinds = column[start:], is_number[place][start:]
        if not all(kinds) and all(reads_as(float, cell.replace(",", "")) for cell in cells):
            bad, known = start + kinds.index(False), rows[0] if named else None
            raise no_number(path, lines[bad], column[bad], place, known, whole=False)
        rarer, mixed = sum(kinds) * 2 < len(kinds), len(set(kinds)) > 1
        for line, cell, kind in zip(lines[start:], cells, kinds, strict=True):
            if not cell or (mixed and kind == rarer):
                raise DemixError(
                    f"Expected a column of numbers or one of text, but line {line} of {path} "
                    f"{f'holds {shortened(cell)!r}' if cell else 'is empty'} in column "
                    f"{shortened(column[0]) if named else place}, which is "
                    f"{'text' if kind else 'numbers'} elsewhere; mend or drop it."
                )
        values.append(list(map(float, cells)) if kinds[0] else cells)
    names = tuple(column[0] for column in columns) if named else None
    return KnownFactors(np.array(values, dtype=object).T, names)
