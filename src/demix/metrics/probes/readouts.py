"""A linear read-out of one factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_matrix, check_seed
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.fitting import missing, read_outs
from demix.metrics.probes.result import ReadOut, Split, random_split
from demix.metrics.probes.table import column_of


def read_out(
    features: Any,
    factor: Any,
    kind: str,
    *,
    split: Split | None = None,
    period: float | None = None,
    permutations: int = 1000,
    seed: int = 0,
) -> ReadOut:
    """Read one factor out of features by a linear map, and score that on rows of their own.

    Numbers are read out by ridge regression, categories by logistic regression, of features that
    are standardised by the training rows. Training rows fit, validation rows choose the penalty,
    test rows score.

    Parameters
    ----------
    features : array (N, d)
        The representation; float32 stays so.
    factor : array (N,)
        Numbers, or text for categories.
    kind : "continuous", "ordinal", "periodic", "categorical" or "binary"
        What the factor is: a number; levels in order, which are numbered; a number that repeats
        after ``period``, read out as sine and cosine; one of several categories, or of two.
    split : Split, optional
        Row numbers ``(train, validation, test)``. By default half, a fifth and the rest of the
        rows at random.
    period : float, optional
        Of a periodic factor, e.g. 360.
    permutations : int
        Size of the null.
    seed : int
        Seed of the split, of the null and of the intervals.

    Returns
    -------
    ReadOut
        Scores with intervals, the null and its p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.probes.readouts import read_out
    >>> random = np.random.default_rng(0)
    >>> angle, size = random.uniform(0, 360, 500), random.normal(size=500)
    >>> features = np.stack([np.cos(np.radians(angle)) + size, np.sin(np.radians(angle)), size], 1)
    >>> found = read_out(features, angle, "periodic", period=360)
    >>> round(found.scores["r"].value, 3), round(found.scores["r2"].value, 3), found.p < 0.01
    (1.0, 1.0, True)
    >>> read_out(features, size > 1, "binary").scores["auc"].value > 0.99
    True
    """
    check_seed(seed)
    values = column_of(factor, "the factor")
    rows = check_matrix(features, "features", keep_float32=True)
    if len(rows) != len(values):
        raise DemixError(
            f"Features and factor must have one row per sample, but have {len(rows)} and "
            f"{len(values)} rows."
        )
    known = Factor("the factor", values, kind, period)
    parts = random_split(len(rows), seed) if split is None else _checked(split, len(rows))
    reason = missing(known, parts)
    if reason is not None:
        raise DemixError(f"Expected a factor that can be read out, but {reason}.")
    return read_outs(rows, [known], parts, permutations=permutations, seed=seed)[0]


def _checked(split: Sequence[Any], rows: int) -> Split:
    """Return parts that share no row: what fits a read-out, or chooses it, must not score it."""
    parts = Split(*(np.asarray(part, dtype=np.int64) for part in split))
    every = np.concatenate(parts)
    if len(every) and not 0 <= every.min() <= every.max() < rows:
        raise DemixError(
            f"Rows are numbered 0..{rows - 1}, but the split holds {every.min()}..{every.max()}."
        )
    twice = len(every) - len(np.unique(every))
    if twice or not all(len(part) for part in parts):
        found = f"{twice} rows are in it twice" if twice else "one of its parts is empty"
        raise DemixError(f"A split must have three parts that share no row, but {found}.")
    return parts
