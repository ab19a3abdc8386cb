"""Tables of factors in any form, as factors of known kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import as_numpy
from demix.data.factors import KnownFactors
from demix.metrics.factors import FEW
from demix.metrics.probes.factor import Factor

_LISTED = 20


def factors_of(
    table: Any,
    rows: int,
    only: Sequence[str] | None,
    kinds: Mapping[str, str],
    periods: Mapping[str, float],
) -> list[Factor]:
    """Return the factors that are asked for, of ``rows`` values each; see :func:`probe`."""
    columns = columns_of(table)
    unknown = [name for name in [*(only or ()), *kinds, *periods] if name not in columns]
    if unknown:
        raise unknown_factors(unknown, columns)
    chosen = [name for name in columns if only is None or name in only]
    if not chosen:
        raise DemixError("Expected at least one factor, but got none.")
    factors = []
    for name in chosen:
        column, period = columns[name], periods.get(name)
        if len(column) != rows:
            raise DemixError(
                f"Features and factors must have one row per sample, but there are {rows} rows of "
                f"features and {len(column)} values of {name!r}."
            )
        kind = kind_of(column) if period is None else "periodic"
        factors.append(Factor(name, column, kinds.get(name, kind), period))
    return factors


def unknown_factors(names: Sequence[str], known: Collection[str]) -> DemixError:
    """Return the refusal of names that no factor has."""
    listed = ", ".join(list(known)[:_LISTED]) + (", ..." if len(known) > _LISTED else "")
    return DemixError(
        f"There is no factor {', '.join(map(repr, names))}; the factors are {listed}."
    )


def columns_of(table: Any) -> dict[str, np.ndarray]:
    """Return factors as columns ``(N,)`` by name; those without a name are numbered from 1."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return {str(name): column_of(table[name], str(name)) for name in table}
    names = None
    if isinstance(table, KnownFactors):
        names, table = table.names, table.values
    array = np.asarray(as_numpy(table, "factors"))
    if array.ndim != 2:
        raise DemixError(
            f"factors must be a table (samples, factors), but have shape {array.shape}; reshape a "
            "single factor with [:, None]."
        )
    names = names or tuple(f"factor {i + 1}" for i in range(array.shape[1]))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DemixError(f"Expected factors of different names, but two are called {twice[0]!r}.")
    return {name: column_of(array[:, i], name) for i, name in enumerate(names)}


def kind_of(values: np.ndarray) -> str:
    """Return the kind of a factor that nothing was said about.

    Text and whole numbers of at most 20 different values are categories, two of them binary.
    """
    levels = np.unique(values)
    if values.dtype.kind not in "Ub" and (
        len(levels) > FEW or bool((levels != np.round(levels)).any())
    ):
        return "continuous"
    return "binary" if len(levels) <= 2 else "categorical"


def column_of(values: Any, name: str) -> np.ndarray:
    """Return one column ``(N,)`` as numbers, truth values or text."""
    column = np.asarray(as_numpy(values, f"values of {name!r}"))
    if column.ndim != 1:
        raise DemixError(
            f"A factor must be one value for each row, (N,), but {name!r} has shape {column.shape}."
        )
    if column.dtype.kind == "O":
        column = _unpacked(column.tolist(), name)
    if column.dtype.kind not in "biufU":
        raise DemixError(
            f"A factor must be numbers or text, but {name!r} is of type {column.dtype}."
        )
    return column


def _unpacked(cells: Sequence[Any], name: str) -> np.ndarray:
    if all(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=str)
    try:
        return np.array(cells, dtype=float)
    except (TypeError, ValueError) as error:
        raise DemixError(
            f"A factor must be numbers or text throughout, but {name!r} is neither: {error}."
        ) from error
