"""How far a representation is from keeping distances."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_pair
from demix.metrics.blocks import Blocks, sampling_of
from demix.metrics.score import Meaning, Score, scored
from demix.metrics.statistic import Statistic, Values, over, units_of


def isometry_error(
    latents: Any,
    factors: Any,
    *,
    similarity: Literal["dot"] | float = "dot",
    rounds: int = 8,
    blocks: Blocks = None,
    seed: int = 0,
) -> Score:
    r"""Return how far :math:`h = f \circ g` is from an isometry (Props. 1 and 4).

    The minimisers of the loss keep similarities up to a constant,
    :math:`s(h(z), h(z~)) = c \, s(z, z~)`. Over random pairs of samples,

    .. math:: \min_c \; |s(h) - c \, s(z)|_2 \; / \; |s(h)|_2

    is 0 for an isometry; smaller is better. The constant is fitted on half of the pairs.

    Parameters
    ----------
    latents, factors, blocks, seed
        As in :func:`demix.affine_r2`.
    similarity : "dot" or float
        The dot product, or ``p`` for :math:`|.|_p^p`.
    rounds : int
        How often every sample is paired with another one.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.isometry import isometry_error
    >>> z = np.random.default_rng(0).normal(size=(500, 3))
    >>> float(round(isometry_error(2 * z[:, ::-1], z), 6))
    0.0
    >>> bool(isometry_error(z * [1.0, 2.0, 3.0], z) > 0.2)
    True
    """
    # One unit for all columns, which the constant takes up.
    latents, factors = (x / units_of(x).max() for x in check_pair(latents, factors))
    number = isinstance(similarity, int | float) and not isinstance(similarity, bool)
    if similarity != "dot" and not (number and 0 < float(similarity) < math.inf):
        raise DemixError(f'similarity must be "dot" or a number p > 0, but got {similarity!r}.')
    if rounds < 1:
        raise DemixError(f"rounds must be at least 1, but got {rounds}.")
    sampling = sampling_of(latents, factors, blocks, seed)
    random = np.random.default_rng(seed)
    shifts = random.integers(1, len(latents), size=2 * rounds)

    def paired(x: np.ndarray, shift: int) -> np.ndarray:
        other = np.roll(x, shift, axis=0)
        if similarity == "dot":
            return (x * other).sum(axis=1)
        return (np.abs(x - other) ** similarity).sum(axis=1)

    true = np.stack([paired(factors, shift) for shift in shifts])

    def measure(z: np.ndarray) -> Statistic:
        found = np.stack([paired(z, shift) for shift in shifts])
        constant = (found[:rounds] * true[:rounds]).sum() / np.square(true[:rounds]).sum()
        missed = np.square(found[rounds:] - constant * true[rounds:])
        terms = np.stack(
            [_of_samples(x, shifts[rounds:]) for x in (missed, np.square(found[rounds:]))], axis=1
        )

        def error(weights: np.ndarray) -> Values:
            off, size = np.clip(weights @ terms, 0, None).T
            # Latents that are all equal keep nothing.
            values = np.where(size > 0, np.sqrt(over(off, size)), 1.0)
            return values, values[:, None]

        return Statistic(np.arange(len(z)), error)

    meaning = Meaning(
        "similarities kept up to one constant",
        "any map that keeps them: rotations, or permutations with signs for p != 2",
        best=0,
    )
    return scored(measure, latents, meaning, sampling)


def _of_samples(pairs: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return terms ``(N,)`` of samples with the mean of pairs ``(rounds, N)`` and its variance.

    Each sample is a member of two pairs in every round, so a mean over pairs varies twice as much
    with a sample as the mean of its own pairs does (the projection of Hoeffding, 1948).
    """
    other = np.stack([np.roll(row, -shift) for row, shift in zip(pairs, shifts, strict=True)])
    own = (pairs + other).mean(axis=0) / 2
    return np.asarray(2 * own - own.mean())
