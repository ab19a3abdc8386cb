"""Read-outs of the papers: of categories as numbers, and within blocks of rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from demix._support.errors import DemixError
from demix.metrics.blocks import exchangeable
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.measures import measured_numbers
from demix.metrics.probes.readouts import estimates, predicted_numbers, shuffled_scores
from demix.metrics.probes.result import ProbeSplit, ReadOut
from demix.metrics.probes.ridge import Basis

# A block of which fewer rows fit is left out.
_LEAST = 4


class Indicators(Factor):
    """A category that is read out as numbers, one indicator for each of its values.

    Read-outs of categories and of numbers are then measured alike, by r and R².
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
    have another zero. Blocks of which fewer than four rows fit, or none chooses the penalty, are
    left out. Options are those of :func:`demix.metrics.probes.readouts.read_out`.
    """
    places, predicted, penalties = [], [], []
    for block in np.unique(blocks[split.test]):
        rows = ProbeSplit(*(part[blocks[part] == block] for part in split))
        if len(rows.train) < _LEAST or len(rows.validation) == 0:
            continue
        basis = Basis.of(features[rows.train])
        parts = ProbeSplit(*(basis(features[part]) for part in rows))
        prediction, penalty = predicted_numbers(basis, parts, factor, rows)
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
    sampling = exchangeable(len(true), seed)
    [null] = shuffled_scores([measured], sampling, permutations)
    penalty = float(np.median(penalties))
    return ReadOut(factor.kind, estimates(measured, sampling), null, penalty, split)
