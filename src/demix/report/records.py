"""Arrays and records as figures need them: named, few enough to draw."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demix._support.errors import DemixError

_ENDS = {"low": -math.inf, "high": math.inf}


def value_of(entry: Mapping[str, Any], key: str) -> float:
    """Return an entry of a record as a number, NaN if it is missing or None."""
    value = entry.get(key)
    return math.nan if value is None else float(value)


def column(history: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """Return one entry of each record as an array, NaN where it is missing or None."""
    return np.array([value_of(entry, key) for entry in history], dtype=float)


def gain_of(record: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers of a :class:`demix.Gain`; an end that is None is infinite."""
    return {key: _ENDS[key] if value is None else value for key, value in record.items()}


def thinned(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of at most ``most`` values whose line looks like that of all of them."""
    # The smallest and the largest value of every stretch are kept: every k-th value would lose
    # peaks.
    if len(values) <= most:
        return np.arange(len(values))
    kept = {0, len(values) - 1}
    for stretch in np.array_split(np.arange(len(values)), max(1, most // 2 - 1)):
        kept |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    return np.array(sorted(kept), dtype=np.intp)


def names_of(names: Sequence[str] | None, n: int, kind: str) -> list[str]:
    """Return the names of ``n`` columns, numbered if none are given."""
    if names is None:
        return [f"{kind} {j + 1}" for j in range(n)]
    if len(names) != n:
        raise DemixError(
            f"there must be one name per {kind}, {n} in all, not {len(names)}; add or drop names"
        )
    return [str(name) for name in names]


def left_out(most: int, count: int, what: str) -> str:
    """Say in a caption that not all are shown."""
    return f" Shown are the first {most} of {count} {what}." if count > most else ""


def correlation_of(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return Pearson's correlation, NaN if a column is constant."""
    spread = float(x.std() * y.std())
    return float(np.mean((x - x.mean()) * (y - y.mean())) / spread) if spread else math.nan
