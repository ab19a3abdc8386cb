"""Numbers as float32, unless that is too coarse for a column."""

import numpy as np

# Steps of float32 above this share of the standard deviation show in what is learnt.
_SHARE = 1e-3
_MOST = float(np.finfo(np.float32).max)


def as_float32(array: np.ndarray, *, copy: bool = True) -> np.ndarray:
    """Return float32 numbers; what is too large becomes infinite, which the checks then find."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32, order="C", copy=copy)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return numbers ``(N, ...)`` as float32, or as float64 if that is too coarse for a column."""
    if np.can_cast(array.dtype, np.float32) or not _loses(array):
        return as_float32(array, copy=False)
    return array.astype(np.float64, copy=False)


def loses_precision(largest: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return for which columns ``(d,)``, of these magnitudes, steps of float32 are too coarse."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (std > 0) & (np.spacing(np.asarray(largest, np.float32)) > _SHARE * std)


def _loses(array: np.ndarray) -> bool:
    """Whether some column loses precision; NaN and what is beyond float32 are ignored."""
    for column in array.reshape(len(array), -1).T if array.size else ():
        known = column[np.abs(column) <= _MOST].astype(np.float64)
        # A constant column minus its first number is zero; minus its mean it may not be.
        if known.size and loses_precision(np.abs(known).max(), (known - known[0]).std()):
            return True
    return False
