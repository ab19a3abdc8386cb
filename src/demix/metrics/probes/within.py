"""A read-out with a map of its own in each group."""

from __future__ import annotations

import numpy as np

from demix._support.errors import DemixError
from demix.metrics.probes.basis import Basis
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.fitting import estimates, shuffled_scores
from demix.metrics.probes.measures import measured_numbers
from demix.metrics.probes.result import ReadOut, Split
from demix.metrics.probes.ridge import ridge

# Rows of a group that fit, fewer than which tell nothing.
_LEAST = 4


def read_out_within(
    features: np.ndarray,
    factor: Factor,
    groups: np.ndarray,
    split: Split,
    *,
    permutations: int,
    seed: int,
) -> ReadOut:
    """Read numbers out of features by a linear map for each group, and score all groups together.

    For a factor that means something within a group only, such as the angle of objects that each
    have another zero.

    Parameters
    ----------
    features : ndarray (N, d)
        Finite numbers.
    factor : Factor
        Read out as numbers.
    groups : ndarray (N,)
        The group of each row. Groups of which fewer than four rows fit, or none chooses the
        penalty, are left out.
    split, permutations, seed : as in :func:`read_out`

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.probes.factor import Factor
    >>> from demix.metrics.probes.result import random_split
    >>> from demix.metrics.probes.within import read_out_within
    >>> random = np.random.default_rng(0)
    >>> size, groups = random.normal(size=200), np.arange(200) % 2
    >>> features = np.where(groups, size, -size)[:, None]  # the other way round in one group
    >>> found = read_out_within(
    ...     features,
    ...     Factor("size", size, "continuous"),
    ...     groups,
    ...     random_split(200, 0),
    ...     permutations=10,
    ...     seed=0,
    ... )
    >>> round(found.scores["r"].value, 3)
    1.0
    """
    places, predicted, penalties = [], [], []
    for group in np.unique(groups[split.test]):
        rows = Split(*(part[groups[part] == group] for part in split))
        if len(rows.train) < _LEAST or len(rows.validation) == 0:
            continue
        basis = Basis.of(features[rows.train])
        parts = Split(*(basis(features[part]) for part in rows))
        targets = [(factor.targets[rows.train], factor.targets[rows.validation])]
        [(slopes, intercept, penalty)] = ridge(basis, parts.train, parts.validation, targets)
        places.append(rows.test)
        predicted.append(parts.test @ slopes.astype(parts.test.dtype) + intercept)
        penalties.append(penalty)
    if not places:
        raise DemixError(
            f"Reading {factor.name!r} out within groups needs groups with {_LEAST} rows to fit, "
            "but none has as many; give more rows."
        )
    true = factor.targets[np.concatenate(places)]
    measured = measured_numbers(np.concatenate(predicted), true)
    [null] = shuffled_scores([measured], len(true), permutations, seed)
    return ReadOut(factor.kind, estimates(measured, seed), null, float(np.median(penalties)), split)
