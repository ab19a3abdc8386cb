"""Numbers as float32, unless that is too coarse for a column."""

import numpy as np

# Steps of float32 above this share of the standard deviation show in what is learnt.
_SHARE = 1e-3
# What one block holds: 1 MB in float64.
_BLOCK = 2**17
_MOST = float(np.finfo(np.float32).max)


def as_float32(array: np.ndarray, *, copy: bool = True) -> np.ndarray:
    """Return float32 numbers; what is too large becomes infinite, which the checks then find."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32, order="C", copy=copy)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return numbers ``(N, ...)`` as float32, or as float64 if float32 is too coarse for a column.

    What is beyond float32 becomes infinite, which the checks then find.
    """
    if np.can_cast(array.dtype, np.float32) or not _loses(array):
        return as_float32(array, copy=False)
    return array.astype(np.float64, copy=False)


def loses_precision(largest: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return for which columns steps of float32 are too coarse for how much they vary.

    ``largest`` are the largest magnitudes of the columns ``(d,)``, ``std`` their standard
    deviations; a column that does not vary is never too coarse.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (std > 0) & (np.spacing(np.asarray(largest, np.float32)) > _SHARE * std)


def _loses(array: np.ndarray) -> bool:
    """Whether some column loses precision; NaN and what is beyond float32 are ignored."""
    shift, largest, count, total, squares = np.full(1, np.nan), *np.zeros((4, 1))
    step = max(1, _BLOCK * len(array) // max(1, array.size))
    for start in range(0, len(array), step):
        rows = array[start : start + step]
        block = rows.reshape(len(rows), -1).astype(np.float64)
        finite = np.abs(block) <= _MOST
        first = np.take_along_axis(block, finite.argmax(axis=0)[None], axis=0)[0]
        # A constant column minus its first number is zero; minus its mean it may not be.
        shift = np.where(np.isnan(shift) & finite.any(axis=0), first, shift)
        apart = np.where(finite, block - shift, 0)
        largest = np.maximum(largest, np.abs(block).max(axis=0, initial=0, where=finite))
        count = count + finite.sum(axis=0)
        total = total + apart.sum(axis=0)
        squares = squares + np.square(apart).sum(axis=0)
    count = np.maximum(count, 1)
    variance = np.maximum(squares / count - (total / count) ** 2, 0)
    return bool(loses_precision(largest, np.sqrt(variance)).any())
