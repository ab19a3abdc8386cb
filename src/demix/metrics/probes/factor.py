"""Factors of known kind, from tables in any form, and what a linear read-out is fitted to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from demix._support.errors import DemixError, demix_errors
from demix._support.validation import as_numpy
from demix.data.factors import KnownFactors, are_few_whole_numbers
from demix.metrics.factors import column_of
from demix.metrics.statistic import units_of

KINDS = ("continuous", "ordinal", "periodic", "categorical", "binary")
_LEAST = 20  # rows that must have a value, or have another one, for a factor to be tested
_LISTED = 20  # names in a message


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor of known kind: numbers ``(N,)``, or text for categories.

    ``continuous`` and ``ordinal`` factors are read out as one number, the value itself or the place
    of the level; ``periodic`` ones, which repeat after ``period``, as sine and cosine; the others
    as categories.
    """

    name: str
    values: np.ndarray
    kind: str
    period: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DemixError(f"A kind is one of {', '.join(KINDS)}, but got {self.kind!r}.")
        if (self.kind == "periodic") != (self.period is not None):
            raise DemixError(
                f"A period belongs to a periodic factor, but {self.name!r} is {self.kind} with "
                f"period {self.period}; give both or neither."
            )
        real = isinstance(self.period, Real)
        if self.period is not None and not (real and 1e-100 < self.period < 1e100):
            got = f"{self.name!r} is {self.period!r}"
            raise DemixError(f"A period must be a positive number, but that of {got}.")
        if self.values.dtype.kind == "U" and self.kind not in ("categorical", "binary"):
            raise DemixError(
                f"The {self.kind} factor {self.name!r} must be numbers, but is text; make it "
                "categorical."
            )
        if self.values.dtype.kind != "U" and not np.isfinite(self.values).all():
            bad = int((~np.isfinite(self.values)).sum())
            raise DemixError(
                f"Factors must be finite, but {bad} of the {len(self.values)} values of "
                f"{self.name!r} are NaN or infinite; remove these rows or fill them in."
            )
        whole = self.values.dtype.kind in "iu" and self.kind in ("continuous", "periodic")
        if whole and np.abs(self.values.astype(float)).max() >= 2.0**53:
            raise DemixError(
                f"Whole numbers must lie below 2^53, beyond which they merge, but {self.name!r} "
                "holds larger ones; subtract what they share, or give them as text."
            )
        if self.kind == "binary" and len(self.levels) > 2:
            raise DemixError(
                f"A binary factor has two values, but {self.name!r} has {len(self.levels)}; make "
                "it categorical."
            )

    @property
    def categorical(self) -> bool:
        """Whether it is read out as categories rather than numbers."""
        return self.kind in ("categorical", "binary")

    @cached_property
    def levels(self) -> np.ndarray:
        """The different values, in order."""
        return np.unique(self.values)

    @cached_property
    def codes(self) -> np.ndarray:
        """The place ``(N,)`` of each value among the levels."""
        return np.searchsorted(self.levels, self.values)

    @cached_property
    def targets(self) -> np.ndarray:
        """What a read-out is fitted to ``(N, k)``: numbers in units of about their range."""
        if self.period is not None:  # sine and cosine
            angle = 2 * np.pi * self.values.astype(float) / self.period
            return np.stack([np.sin(angle), np.cos(angle)], axis=1)
        number = self.codes if self.kind == "ordinal" else self.values
        return (number / units_of(number))[:, None]

    @cached_property
    def counted(self) -> np.ndarray:
        """Places of the levels that enough rows have to be scored."""
        return np.flatnonzero(np.bincount(self.codes) >= _LEAST)

    @property
    def untestable(self) -> str | None:
        """Why this factor cannot be tested, whatever the features; None if it can."""
        counts = np.bincount(self.codes)
        if len(counts) == 1:
            return "it has one value only"
        if self.kind == "binary":
            if counts.min() < _LEAST:
                return f"fewer than {_LEAST} rows have its rarer value ({counts.min()})"
        elif self.categorical:
            if len(self.counted) < 2:
                return f"fewer than two of its values have {_LEAST} rows"
        elif (others := len(self.codes) - counts.max()) < _LEAST:
            return f"fewer than {_LEAST} rows differ from its most frequent value ({others})"
        return None


def factors_of(
    table: Any,
    rows: int,
    only: Sequence[str] | None,
    kinds: Mapping[str, str],
    periods: Mapping[str, float],
) -> list[Factor]:
    """Return the chosen factors of a table, of ``rows`` values each; see :func:`probe`."""
    columns = columns_of(table)
    with demix_errors("Expected a list of names, kinds and periods by name", "give them so"):
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
        kind = _default_kind(column) if period is None else "periodic"
        factors.append(Factor(name, column, kinds.get(name, kind), period))
    return factors


def unknown_factors(names: Sequence[str], known: Collection[str]) -> DemixError:
    """Return the error for names that no factor has."""
    listed = ", ".join(list(known)[:_LISTED]) + (", ..." if len(known) > _LISTED else "")
    return DemixError(f"There is no factor {', '.join(map(repr, names))}; known are {listed}.")


def columns_of(table: Any) -> dict[str, np.ndarray]:
    """Return factors as columns ``(N,)`` by name; those without a name are numbered from 1."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return {str(name): column_of(table[name], repr(str(name))) for name in table}
    names = None
    if isinstance(table, KnownFactors):
        names, table = table.names, table.values
    with demix_errors("Expected factors as a table", "give rows of one length"):
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
    return {name: column_of(array[:, i], repr(name)) for i, name in enumerate(names)}


def _default_kind(values: np.ndarray) -> str:
    """Return the default kind: text and few whole numbers are categories, two of them binary."""
    if values.dtype.kind not in "Ub" and not are_few_whole_numbers(values):
        return "continuous"
    return "binary" if len(np.unique(values)) <= 2 else "categorical"
