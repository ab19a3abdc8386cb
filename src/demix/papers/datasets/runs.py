"""Masks as runs of pixels: the compressed run lengths of COCO, many masks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Characters stand for 6 bits: 5 of a number, and one that says whether it goes on.
_FIRST, _BITS, _GOES_ON, _SIGN = 48, 5, 32, 16
# Longer numbers than these could not count the pixels of any image, and would not fit into int64.
_LONGEST = 8


class Runs(NamedTuple):
    """Runs of ``M`` masks: ``lengths`` of all, background first, then in turns.

    Those of a mask begin at ``first``; ``whole`` says whether they cover the image exactly.
    """

    lengths: np.ndarray
    first: np.ndarray
    whole: np.ndarray


def read_runs(codes: Sequence[bytes], pixels: int) -> Runs:
    """Read COCO's compressed run lengths, all codes in one pass.

    A number is written in groups of 5 bits, lowest first, as two's complement; from the fourth run
    on, what is written is the difference to the run before the last one. The runs of each mask must
    add up to ``pixels``.
    """
    digits = np.frombuffer(b"".join(codes), np.uint8).astype(np.int64) - _FIRST
    ends = np.cumsum([len(code) for code in codes])
    is_last = (digits & _GOES_ON) == 0
    readable = (digits >= 0) & (digits < 2 * _GOES_ON)
    # A code that ends within a number must not swallow the beginning of the next.
    readable[ends - 1] &= is_last[ends - 1]
    is_last[ends - 1] = True
    last = np.flatnonzero(is_last)
    start = np.append(0, last[:-1] + 1)
    place = np.arange(len(digits)) - np.repeat(start, last - start + 1)
    readable &= place < _LONGEST
    place = place.clip(max=_LONGEST)
    numbers = np.add.reduceat((digits & (_GOES_ON - 1)) << (_BITS * place), start)
    numbers -= ((digits[last] & _SIGN) > 0) * (1 << (_BITS * (place[last] + 1)))
    first = np.append(0, np.searchsorted(last, ends - 1) + 1)
    lengths = _undo_differences(numbers, first)
    covered = np.add.reduceat(lengths, first[:-1]) == pixels
    shortest = np.minimum.reduceat(lengths, first[:-1])
    legible = np.logical_and.reduceat(readable, np.append(0, ends[:-1]))
    return Runs(lengths, first, covered & (shortest >= 0) & legible)


def sampled(runs: Runs, height: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pixels ``(M, h, w)`` of whole masks at rising ``rows`` and ``columns`` only.

    Runs go down the columns, from left to right.
    """
    # Sampled pixels in the order of the runs; the ends of runs are looked up among them.
    pixels = (columns[:, None] * height + rows).ravel()
    begins = np.cumsum(runs.lengths) - runs.lengths
    within = begins - np.repeat(begins[runs.first[:-1]], np.diff(runs.first))
    seen = np.searchsorted(pixels, within + runs.lengths) - np.searchsorted(pixels, within)
    turn = np.arange(len(runs.lengths)) - np.repeat(runs.first[:-1], np.diff(runs.first))
    masks = np.repeat(turn % 2 == 1, seen)
    return masks.reshape(-1, len(columns), len(rows)).transpose(0, 2, 1)


def _undo_differences(numbers: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add up every second number of each mask, leaving its first as it is."""
    turn = np.arange(len(numbers)) - np.repeat(first[:-1], np.diff(first))
    lengths = numbers.copy()
    for parity in (0, 1):
        takes_part = (turn % 2 == parity) & (turn > 0)
        total = np.cumsum(np.where(takes_part, numbers, 0))
        # The first number of a mask takes no part: up to it is what came before the mask.
        before = np.repeat(total[first[:-1]], np.diff(first))
        lengths[takes_part] = (total - before)[takes_part]
    return lengths
