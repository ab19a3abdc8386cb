"""Numbers out of records, and few of many that still look the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def value_of(entry: Mapping[str, Any], key: str) -> float:
    """Entry of a record as a number, NaN where it is missing or None.

    Examples
    --------
    >>> value_of({"loss": 2}, "loss"), value_of({}, "loss")
    (2.0, nan)
    """
    value = entry.get(key)
    return math.nan if value is None else float(value)


def column(history: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """One entry of each record as an array, NaN where it is missing or None.

    Examples
    --------
    >>> column([{"loss": 1.5}, {}], "loss")
    array([1.5, nan])
    """
    return np.array([value_of(entry, key) for entry in history], dtype=float)


def thinned(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Places of at most `most` values whose line looks like that of all of them.

    Of every stretch its smallest and its largest value are kept: every k-th value would lose
    peaks.

    Examples
    --------
    >>> values = np.zeros(1000)
    >>> values[333] = 1.0
    >>> kept = thinned(values, 20)
    >>> len(kept) <= 20, 333 in kept
    (True, True)
    """
    if len(values) <= most:
        return np.arange(len(values))
    kept = {0, len(values) - 1}
    for stretch in np.array_split(np.arange(len(values)), max(1, most // 2 - 1)):
        kept |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    return np.array(sorted(kept), dtype=np.intp)
