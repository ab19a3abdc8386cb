"""Numbers and text from parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, need, reason, shortened
from demix._support.memory import check_memory
from demix.data.formats import check_kind, find_column


def read_parquet(
    path: Path, columns: Sequence[str | int] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the numbers ``(N, d)`` of a parquet file as float64, and the names of its columns.

    Missing values become NaN, which the checks then find.
    """
    arrow = need("pyarrow", "Reading a .parquet file", "files")
    with _opened(path) as file:
        names = _number_columns(path, file.schema_arrow, columns)
        rows = file.metadata.num_rows
        check_memory(2 * 8 * rows * len(names), f"Reading {path}", "choose fewer columns")
        numbers = np.empty((rows, len(names)), dtype=np.float64)
        start = 0
        for batch in file.iter_batches(columns=names):
            for place, name in enumerate(names):
                column = batch.column(name).cast(arrow.float64(), safe=False)
                numbers[start : start + len(batch), place] = column.to_numpy(zero_copy_only=False)
            start += len(batch)
        if start != rows:
            raise ValueError(f"it has {start} rows and claims {rows}")
    return numbers, tuple(names)


def parquet_names(path: Path) -> list[str]:
    """Return the names of all columns of a parquet file, those of an index among them."""
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_text(path: Path) -> dict[str, bool]:
    """Return the columns of a parquet file but for an index, and whether each is text."""
    types = need("pyarrow", "Reading a .parquet file", "files").types

    def is_text(kind: Any) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    with _opened(path) as file:
        schema = file.schema_arrow
        return {name: is_text(schema.field(name).type) for name in _data_columns(schema)}


def parquet_cells(path: Path, column: str) -> list[str]:
    """Return one column of a parquet file as text, whatever it holds."""
    arrow = need("pyarrow", "Reading a .parquet file", "files")
    with _opened(path) as file:
        names = list(file.schema_arrow.names)
        name = names[find_column(column, names, path)]
        # A list, and text of its own in each row.
        check_memory(120 * file.metadata.num_rows, f"Reading {path}", "take fewer rows")
        cells: list[str | None] = []
        for batch in file.iter_batches(columns=[name]):
            cells += batch.column(name).cast(arrow.string()).to_pylist()
    if None in cells:
        raise DemixError(
            f"Expected a value in every row, but row {cells.index(None)} (counted from 0) of "
            f"column {column!r} of {path} is empty; fill it in or drop the row."
        )
    return [str(cell) for cell in cells]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a parquet file; whatever goes wrong with it while it is open is told in one sentence."""
    check_kind(path, "a parquet file")
    arrow = need("pyarrow", "Reading a .parquet file", "files")
    parquet = need("pyarrow.parquet", "Reading a .parquet file", "files")
    try:
        # As text, pyarrow takes only names in UTF-8.
        with (
            arrow.OSFile(os.fsencode(path)) as raw,
            parquet.ParquetFile(raw, page_checksum_verification=True) as file,
        ):
            yield file
    except DemixError:
        raise
    except Exception as error:  # it is built of several formats, each with errors of its own
        raise DemixError(
            f"Expected a whole parquet file, but {path} cannot be read as one ({reason(error)}); "
            "write it again."
        ) from error


def _data_columns(schema: Any) -> list[str]:
    # Rows of a frame may have had names; they are no data.
    pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = [name for name in pandas.get("index_columns", []) if isinstance(name, str)]
    return [name for name in schema.names if name not in index]


def _number_columns(path: Path, schema: Any, columns: Sequence[str | int] | None) -> list[str]:
    """Return the names of the columns to read, all of them numbers."""
    types = need("pyarrow", "Reading a .parquet file", "files").types
    columns = _data_columns(schema) if columns is None else columns
    names = [schema.names[find_column(str(name), schema.names, path)] for name in columns]
    for name in names:
        kind = schema.field(name).type
        is_number = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        if not any(test(kind) for test in is_number):
            raise DemixError(
                f"Expected columns of numbers, but column {shortened(name)!r} of {path} is of type "
                f"{shortened(str(kind))}; "
                "convert it or choose other columns."
            )
    return names
