"""Arrays and records as figures need them: checked, named, few enough to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix._support.errors import DemixError


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


def numbers_of(values: ArrayLike, name: str, dtype: type = float) -> NDArray[Any]:
    """Array of numbers, refused where the values are none.

    Examples
    --------
    >>> numbers_of(["a"], "time")
    Traceback (most recent call last):
    ...
    demix.DemixError: time must hold numbers, but does not: could not convert ...
    """
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DemixError(
            f"{name} must hold numbers, but does not: {reason}; convert the values first"
        ) from error


def matrix_of(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Samples by columns, refused where they are not a filled matrix of finite numbers.

    Examples
    --------
    >>> matrix_of([[1, 2]], "latents").shape
    (1, 2)
    """
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
    """Names of `n` columns, numbered where none are given.

    Examples
    --------
    >>> names_of(None, 2, "latent")
    ['latent 1', 'latent 2']
    """
    if names is None:
        return [f"{kind} {j + 1}" for j in range(n)]
    if len(names) != n:
        raise DemixError(
            f"there must be one name per {kind}, {n} in all, not {len(names)}; add or drop names"
        )
    return [str(name) for name in names]


def correlation_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson correlation, NaN where a column is constant.

    Examples
    --------
    >>> correlation_of(np.array([1.0, 2.0]), np.array([4.0, 2.0]))
    -1.0
    """
    spread = float(x.std() * y.std())
    if spread == 0:
        return math.nan
    return float(np.mean((x - x.mean()) * (y - y.mean())) / spread)
