"""Read-outs of the papers: of categories as numbers, and within blocks of rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from demix._support.errors import DemixError
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.measures import measured_numbers
from demix.metrics.probes.readouts import estimates, predicted_numbers, shuffled_scores
from demix.metrics.probes.result import ProbeSplit, ReadOut
from demix.metrics.probes.ridge import Basis

# A block of which fewer rows fit is left out.
_LEAST = 4


class Indicators(Factor):
    """A category that is read out as numbers, one indicator for each of its values.

    Read-outs of categories and of numbers are then measured alike, by r and :math:`R^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers.reizinger2024.within import Indicators
    >>> Indicators("shape", np.array(["cube", "ball", "cube"]), "categorical").targets.tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    @property
    def categorical(self) -> bool:
        """It is read out as numbers."""
        return False

    @cached_property
    def targets(self) -> np.ndarray:
        """What a read-out is fitted to, ``(N, k)`` for ``k`` different values."""
        return (self.codes[:, None] == np.arange(len(self.levels))).astype(float)


def read_out_within(
    features: np.ndarray,
    factor: Factor,
    blocks: np.ndarray,
    split: ProbeSplit,
    *,
    permutations: int,
    seed: int,
) -> ReadOut:
    """Read numbers out of features by a linear map for each block, and score all blocks together.

    For a factor that means something within a block only, such as the angle of objects that each
    have another zero.

    Parameters
    ----------
    features : ndarray (N, d)
        Finite numbers.
    factor : Factor
        Read out as numbers.
    blocks : ndarray (N,)
        The block of each row. Blocks of which fewer than four rows fit, or none chooses the
        penalty, are left out.
    split, permutations, seed
        As in :func:`read_out`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.probes.factor import Factor
    >>> from demix.papers.reizinger2024.within import read_out_within
    >>> from demix.metrics.probes.result import random_split
    >>> size, blocks = np.random.default_rng(0).normal(size=200), np.arange(200) % 2
    >>> features = np.where(blocks, size, -size)[:, None]  # the other sign in one block
    >>> factor, split = Factor("size", size, "continuous"), random_split(200, 0)
    >>> found = read_out_within(features, factor, blocks, split, permutations=10, seed=0)
    >>> round(found.scores["r"].value, 3)
    1.0
    """
    places, predicted, penalties = [], [], []
    for block in np.unique(blocks[split.test]):
        rows = ProbeSplit(*(part[blocks[part] == block] for part in split))
        if len(rows.train) < _LEAST or len(rows.validation) == 0:
            continue
        basis = Basis.of(features[rows.train])
        parts = ProbeSplit(*(basis(features[part]) for part in rows))
        [(prediction, penalty)] = predicted_numbers(basis, parts, [factor], rows)
        places.append(rows.test)
        predicted.append(prediction)
        penalties.append(penalty)
    if not places:
        raise DemixError(
            f"Reading {factor.name!r} out within blocks needs blocks with {_LEAST} rows to fit, "
            "but none has as many; give more rows."
        )
    true = factor.targets[np.concatenate(places)]
    measured = measured_numbers(np.concatenate(predicted), true)
    [null] = shuffled_scores([measured], len(true), permutations, seed)
    penalty = float(np.median(penalties))
    return ReadOut(factor.kind, estimates(measured, seed), null, penalty, split)
