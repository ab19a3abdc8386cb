"""Which numbers lose something that matters when they become float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from demix.data.rows import as_float32

# Steps of float32 larger than this share of the standard deviation can be seen in what is learnt.
_SHARE = 1e-3
# What one block holds: 1 MB in float64.
_BLOCK = 2**17
_MOST = float(np.finfo(np.float32).max)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return numbers ``(N, ...)`` as float32, or as float64 if some column loses by it.

    What is beyond float32 becomes infinite, which the checks then find.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.data.precision import narrowed
    >>> x = np.array([[0.25], [0.5], [0.75]])
    >>> narrowed(x).dtype, narrowed(x + 1e6).dtype
    (dtype('float32'), dtype('float64'))
    """
    exact = np.can_cast(array.dtype, np.float32)
    if exact or not _loses(array):
        return as_float32(array, copy=False)
    return array.astype(np.float64, copy=False)


def loses_precision(largest: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Tell which columns are known too coarsely in float32 for how much they vary.

    Parameters
    ----------
    largest : array (d,)
        The largest magnitude in each column.
    std : array (d,)
        Its standard deviation; a column that does not vary loses nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.data.precision import loses_precision
    >>> loses_precision(np.array([1.0, 1e6, 1e6]), np.array([1.0, 1.0, 0.0])).tolist()
    [False, True, False]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (std > 0) & (np.spacing(np.asarray(largest, np.float32)) > _SHARE * std)


def _loses(array: np.ndarray) -> bool:
    """Whether some column loses precision; NaN and what is beyond float32 are ignored."""
    shift, largest, count, total, squares = np.full(1, np.nan), *np.zeros((4, 1))
    for block in _blocks(array):
        finite = np.abs(block) <= _MOST
        first = np.take_along_axis(block, finite.argmax(axis=0)[None], axis=0)[0]
        # Without its first number, a column that is constant is zero, however a mean is rounded.
        shift = np.where(np.isnan(shift) & finite.any(axis=0), first, shift)
        apart = np.where(finite, block - shift, 0)
        largest = np.maximum(largest, np.abs(block).max(axis=0, initial=0, where=finite))
        count = count + finite.sum(axis=0)
        total = total + apart.sum(axis=0)
        squares = squares + np.square(apart).sum(axis=0)
    count = np.maximum(count, 1)
    variance = np.maximum(squares / count - (total / count) ** 2, 0)
    return bool(loses_precision(largest, np.sqrt(variance)).any())


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Go through the rows as float64 ``(B, d)``, some at a time."""
    step = max(1, _BLOCK * len(array) // max(1, array.size))
    for start in range(0, len(array), step):
        rows = array[start : start + step]
        yield rows.reshape(len(rows), -1).astype(np.float64)
