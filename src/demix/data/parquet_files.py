"""Numbers from parquet files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demix.data.csv_files import find_column
from demix.data.formats import check_kind, need, reason, shortened
from demix.data.rows import as_float32
from demix.errors import DemixError
from demix.memory import check_memory


def read_parquet(
    path: Path, columns: Sequence[str | int] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the numbers ``(N, d)`` of a parquet file as float32, and the names of its columns.

    Missing values become NaN, which the checks then find.
    """
    check_kind(path, "a parquet file")
    arrow = need("pyarrow", "a .parquet file")
    parquet = need("pyarrow.parquet", "a .parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            names = _parquet_columns(path, file.schema_arrow, columns)
            rows = file.metadata.num_rows
            check_memory(2 * 4 * rows * len(names), f"Reading {path}", "choose fewer columns")
            numbers = np.empty((rows, len(names)), dtype=np.float32)
            start = 0
            for batch in file.iter_batches(columns=names):
                for place, name in enumerate(names):
                    column = batch.column(name).cast(arrow.float64(), safe=False)
                    numbers[start : start + len(batch), place] = as_float32(
                        column.to_numpy(zero_copy_only=False)
                    )
                start += len(batch)
        if start != rows:
            raise ValueError(f"it has {start} rows and claims {rows}")
    except DemixError:
        raise
    except Exception as error:  # it is built of several formats, each with errors of its own
        raise DemixError(
            f"Expected a whole parquet file, but {path} cannot be read as one ({reason(error)}); "
            "write it again."
        ) from error
    return numbers, tuple(names)


def _parquet_columns(path: Path, schema: Any, columns: Sequence[str | int] | None) -> list[str]:
    """Return the names of the columns to read, all of them numbers."""
    types = need("pyarrow", "a .parquet file").types
    if columns is None:
        # Rows of a frame may have had names; they are no data.
        pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = [name for name in pandas.get("index_columns", []) if isinstance(name, str)]
        columns = [name for name in schema.names if name not in index]
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
