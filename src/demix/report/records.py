"""Arrays and records as figures need them: checked, named, few enough to draw."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix._support.errors import DemixError

_NEEDED = ("bits", "low", "high", "ceiling", "loss", "sharpness", "p_value")
_ENDS = {"low": -math.inf, "high": math.inf}


def value_of(entry: Mapping[str, Any], key: str) -> float:
    """Return an entry of a record as a number, NaN if it is missing or None."""
    value = entry.get(key)
    return math.nan if value is None else float(value)


def column(history: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """Return one entry of each record as an array, NaN where it is missing or None."""
    return np.array([value_of(entry, key) for entry in history], dtype=float)


def gain_of(record: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers of a :class:`demix.Gain`.

    An end that is None is infinite. Raise DemixError if a number is missing or not finite.
    """
    gain = {key: value_of(record, key) for key in _NEEDED}
    gain |= {key: end for key, end in _ENDS.items() if key in record and record[key] is None}
    missing = [k for k, v in gain.items() if math.isnan(v) or (math.isinf(v) and k not in _ENDS)]
    if missing:
        raise DemixError(
            f"a gain needs finite numbers {', '.join(_NEEDED)}, but has none for "
            f"{', '.join(missing)}; score the fit on held-out rows first"
        )
    if gain["low"] > gain["high"]:
        raise DemixError(
            f"the interval of a gain must reach from low to high, but {gain['low']:.4g} lies "
            f"above {gain['high']:.4g}; exchange the two"
        )
    return gain


def thinned(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of at most ``most`` values whose line looks like that of all of them.

    The smallest and the largest value of every stretch are kept: every k-th value would lose peaks.
    """
    if len(values) <= most:
        return np.arange(len(values))
    kept = {0, len(values) - 1}
    for stretch in np.array_split(np.arange(len(values)), max(1, most // 2 - 1)):
        kept |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    return np.array(sorted(kept), dtype=np.intp)


def numbers_of(values: ArrayLike, name: str, dtype: type = float) -> NDArray[Any]:
    """Return an array of numbers. Raise DemixError if the values are none."""
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DemixError(
            f"{name} must hold numbers, but does not: {reason}; convert the values first"
        ) from error


def matrix_of(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return samples by columns. Raise DemixError if it is no filled matrix of finite numbers."""
    matrix = numbers_of(values, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DemixError(
            f"{name} must be a filled matrix of shape (N, n), but has shape {matrix.shape}; pass "
            "one row per sample and one column per factor or latent"
        )
    if not np.isfinite(matrix).all():
        raise DemixError(
            f"{name} must be finite, but {int((~np.isfinite(matrix)).sum())} entries are not; "
            "check whether the training diverged"
        )
    return matrix


def names_of(names: Sequence[str] | None, n: int, kind: str) -> list[str]:
    """Return the names of ``n`` columns, numbered if none are given."""
    if names is None:
        return [f"{kind} {j + 1}" for j in range(n)]
    if len(names) != n:
        raise DemixError(
            f"there must be one name per {kind}, {n} in all, not {len(names)}; add or drop names"
        )
    return [str(name) for name in names]


def correlation_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, NaN if a column is constant."""
    spread = float(x.std() * y.std())
    if spread == 0:
        return math.nan
    return float(np.mean((x - x.mean()) * (y - y.mean())) / spread)
