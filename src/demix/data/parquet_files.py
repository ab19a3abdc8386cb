"""Numbers and text from parquet files."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, demix_errors, need, shortened
from demix._support.memory import check_memory
from demix.data.formats import LONGEST_CELL, Which, check_kind, check_names, find_column


def read_parquet(path: Path, columns: Which) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the numbers ``(N, d)`` of a parquet file, NaN where they are missing, and names."""
    with _opened(path) as (arrow, file):
        names = _number_columns(path, file.schema_arrow, arrow.types, columns)
        rows, start = file.metadata.num_rows, 0
        check_memory(2 * 8 * rows * len(names), f"Reading {path}", "choose fewer columns")
        schema = file.schema_arrow
        kinds = dict(zip(schema.names, schema.types, strict=True))
        exact = all(np.can_cast(kinds[name].to_pandas_dtype(), np.float32) for name in names)
        numbers = np.empty((rows, len(names)), dtype=np.float32 if exact else np.float64)
        for batch in file.iter_batches(columns=names):
            found = dict(zip(batch.schema.names, batch.columns, strict=True))
            for place, name in enumerate(names):
                column = found[name].cast(arrow.float64(), safe=False)
                numbers[start : start + len(batch), place] = column.to_numpy(zero_copy_only=False)
            start += len(batch)
        if start != rows:
            raise ValueError(f"it has {start} rows and claims {rows}")
    return numbers, tuple(names)


def parquet_names(path: Path) -> list[str]:
    """Return the names of all columns of a parquet file, including those of an index."""
    with _opened(path) as (_, file):
        return list(file.schema_arrow.names)


def parquet_text(path: Path) -> dict[str, bool]:
    """Return the columns of a parquet file except an index, and whether each is text."""
    with _opened(path) as (arrow, file):
        schema, text = file.schema_arrow, (arrow.string(), arrow.large_string())
        kinds = dict(zip(schema.names, schema.types, strict=True))
        # Text that is kept as a dictionary says so.
        return {
            name: kinds[name] in text or getattr(kinds[name], "value_type", None) in text
            for name in _columns(schema)
        }


def parquet_cells(path: Path, column: str | None) -> list[str]:
    """Return one column of a parquet file, by default the only one, as text, whatever its type."""
    # An index is chosen by its name, or if there is nothing else.
    names = (list(parquet_text(path)) if column is None else []) or parquet_names(path)
    name = names[find_column(column, names, path)]
    compute = need("pyarrow.compute", "Reading a .parquet file", "files")
    cells: list[str | None] = []
    # As a dictionary, a long text that is repeated in thousands of rows takes its room once.
    with _opened(path, read_dictionary=[name]) as (arrow, file):
        # A list, and a string in each row.
        check_memory(120 * file.metadata.num_rows, f"Reading {path}", "take fewer rows")
        for batch in file.iter_batches(columns=[name]):
            found = batch.column(name).dictionary_encode()
            text = found.dictionary.cast(arrow.string())
            longest = compute.max(compute.utf8_length(text)).as_py() or 0
            if longest > LONGEST_CELL:
                raise DemixError(
                    f"Expected text of at most {LONGEST_CELL} letters, but column "
                    f"{shortened(name)!r} of {path} has one of {longest}; shorten it."
                )
            check_memory(text.nbytes, f"Reading {path}", "take fewer rows")
            words = text.to_pylist()
            cells += [None if i is None else words[i] for i in found.indices.to_pylist()]
    if None in cells:
        raise DemixError(
            f"Expected a value in every row, but row {cells.index(None)} (counted from 0) of "
            f"column {name!r} of {path} is empty; fill it in or drop the row."
        )
    return [str(cell) for cell in cells]


@contextmanager
def _opened(path: Path, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Give pyarrow and an open file; errors up to its close become one sentence."""
    check_kind(path, "a parquet file")
    arrow = need("pyarrow", "Reading a .parquet file", "files")
    parquet = need("pyarrow.parquet", "Reading a .parquet file", "files")
    problem = f"Expected a whole parquet file, but {path} cannot be read as one"
    with (
        demix_errors(problem, "write it again"),
        arrow.OSFile(os.fsencode(path)) as raw,  # as text, it takes only names in UTF-8
        parquet.ParquetFile(raw, page_checksum_verification=True, **options) as file,
    ):
        check_names(file.schema_arrow.names, path)
        yield arrow, file


def _columns(schema: Any) -> list[str]:
    """Return the names of all columns but those of a frame's index."""
    notes = (schema.metadata or {}).get(b"pandas", b"{}")
    if len(notes) > 2**24:  # as objects they take up to forty times as many
        raise ValueError(f"pandas left {len(notes)} bytes of notes")
    index = {name for name in json.loads(notes).get("index_columns", []) if isinstance(name, str)}
    return [name for name in schema.names if name not in index]


def _number_columns(path: Path, schema: Any, types: Any, columns: Which) -> list[str]:
    """Return the names of the columns to read, all of them numbers."""
    every = schema.names  # asked for once: pyarrow makes a new list each time
    kinds = dict(zip(every, schema.types, strict=True))
    names = _columns(schema)
    if columns is not None:
        names = [every[find_column(str(name), every, path)] for name in columns]
    if not names:
        raise DemixError(f"Expected columns of numbers, but {path} has none but an index.")
    again = [name for name, times in Counter(names).items() if times > 1]
    if again:
        raise DemixError(
            f"Expected columns of different names, but {path} has several called "
            f"{shortened(again[0])!r}; rename them, or choose other columns."
        )
    is_number = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    for name in names:
        if not any(test(kinds[name]) for test in is_number):
            raise DemixError(
                f"Expected columns of numbers, but column {shortened(name)!r} of {path} is of type "
                f"{shortened(str(kinds[name]))}; convert it or choose other columns."
            )
    return names
