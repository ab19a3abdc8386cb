"""Which rows runs are fitted to, which align them, and which test their agreement."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.data import Data
from demix.estimators.sources import connected_rows, thin

_BLOCKS = 25  # test rows come in so many blocks, which the intervals resample
_MOST = 20_000  # a larger part is thinned to this many rows, evenly


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows that runs are fitted to, their maps, and that test them; disjoint, in ascending order.

    Test rows of different ``blocks`` ``(M,)`` count as independent; ``in_time``, neighbours are
    alike.
    """

    fit: Tensor
    align: Tensor
    test: Tensor
    blocks: np.ndarray
    in_time: bool


def divided(
    estimator: Any, rows: Data, y: Any, positives: Any, share: float, seed: int
) -> tuple[Parts, Data, dict[str, Any]]:
    """Return the parts, and the data and the targets that runs are fitted to."""
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise DemixError(f"held_out must be a share between 0 and 1, but got {share!r}.")
    least, count = 5 * (estimator.n_latents + 1), len(rows)  # to fit a map, and some to spare
    if positives is not None:
        every, pairs = estimator._targets(rows, reset=True, y=y, positives=positives)
        return _paired(count, every, pairs, share, least, seed)
    if estimator.supervision == "labels":
        if y is None:
            raise DemixError("ClassifierDemixer learns from classes, but y is None; pass y.")
        labels = np.asarray(y.detach().cpu() if torch.is_tensor(y) else y)
        if labels.shape != (count,):
            raise DemixError(f"y must be one class for each of {count} rows, not {labels.shape}.")
        parts = row_parts(count, share, least, seed, labels=labels)
        return parts, rows.only(parts.fit), {"y": labels[parts.fit.numpy()]}
    lag = estimator.time_lag()
    if lag is not None:
        parts = time_parts(count, share, lag, least)
    else:
        parts = row_parts(count, share, least, seed)
    return parts, rows.only(parts.fit), {}


def _paired(
    count: int, every: Data, pairs: torch.Tensor, share: float, least: int, seed: int
) -> tuple[Parts, Data, dict[str, Any]]:
    # A positive that was given for each row lies behind all rows, and goes where its row goes.
    inside = len(every) == count
    parts = row_parts(count, share, least, seed, pairs=pairs if inside else None)
    fit = parts.fit if inside else torch.cat([parts.fit, parts.fit + count])
    kept = pairs_within(pairs, fit, len(every))
    if len(kept) == 0:
        raise DemixError(
            f"Of {len(pairs)} pairs none lies within the rows that runs are fitted to; give more "
            "pairs, of more different rows."
        )
    return parts, every.only(fit), {"positives": kept}


def time_parts(rows: int, share: float, high: int, least: int) -> Parts:
    """Hold out the end of a series; its stretches alternate between ``align`` and ``test``."""
    held = round(share * rows)
    # At least ten stretches, or the interval means nothing.
    _enough(held, max(2 * least + 8 * high, 40 * high), rows - held, least + high, rows, share)
    stretch = max(4 * high, -(-held // (2 * _BLOCKS)))  # ``high`` is the largest lag
    number = np.arange(held) // stretch
    held_rows = torch.arange(rows - held, rows)
    odd = torch.from_numpy(number % 2 == 1)
    align, test = thin(held_rows[~odd], _MOST), thin(held_rows[odd], _MOST)
    blocks = number[test.numpy() - (rows - held)] // 2
    return Parts(torch.arange(rows - held), align, test, blocks, in_time=True)


def row_parts(
    rows: int,
    share: float,
    least: int,
    seed: int,
    *,
    labels: np.ndarray | None = None,
    pairs: Tensor | None = None,
) -> Parts:
    """Hold out rows at random: some of every class, and rows that pairs connect as a whole."""
    # If most rows are connected, they are split at random, and pairs between two parts are lost.
    random = np.random.default_rng([seed, rows])
    unit = np.arange(rows)
    if pairs is not None:
        together = connected_rows(pairs, rows)
        if np.bincount(together).max() <= (1 - share) * rows:
            unit = together
    sizes = np.bincount(unit)
    target = share * rows
    if labels is None:
        order = random.permutation(len(sizes))
        # A unit that would fill half of a held-out part alone comes last, for the fit.
        order = order[np.argsort(sizes[order] > target / 4, kind="stable")]
        order = order[np.cumsum(sizes[order]) <= target]
    else:
        order = random.permutation(_of_every_class(labels, share, random))
    half = np.cumsum(sizes[order]) <= sizes[order].sum() / 2
    place = np.zeros(len(sizes), dtype=np.int64)
    place[order] = np.where(half, 1, 2)
    block = np.zeros(len(sizes), dtype=np.int64)
    block[order] = np.arange(len(order)) % _BLOCKS
    fit, align, test = (torch.from_numpy(np.flatnonzero(place[unit] == k)) for k in range(3))
    _enough(2 * min(len(align), len(test)), 2 * least, len(fit), least, rows, share)
    align, test = thin(align, _MOST), thin(test, _MOST)
    return Parts(fit, align, test, block[unit][test.numpy()], in_time=False)


def pairs_within(pairs: Tensor, fit: Tensor, rows: int) -> Tensor:
    """Return the pairs whose rows are both in ``fit``, as places in ``fit``."""
    number = torch.full((rows,), -1)
    number[fit] = torch.arange(len(fit))
    renumbered = number[pairs]
    return renumbered[(renumbered >= 0).all(dim=1)]


def _of_every_class(labels: np.ndarray, share: float, random: np.random.Generator) -> np.ndarray:
    """Return rows to hold out, in proportion to the sizes of the classes."""
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.lexsort((random.random(len(codes)), codes))
    place = np.arange(len(codes))
    chosen = np.floor((place + 1) * share) > np.floor(place * share)
    chosen[np.cumsum(sizes) - sizes] = False  # keep one row of each class for the fit
    return np.asarray(order[chosen])


def _enough(held: int, least: int, left: int, least_left: int, rows: int, share: float) -> None:
    """Raise a DemixError if too few rows are held out, or left to fit."""
    if held < least:
        raise DemixError(
            f"Aligning runs takes at least {least} held-out rows, but a share of {share:g} of "
            f"{rows} rows leaves {held}; give more rows or a larger held_out."
        )
    if left < least_left:
        raise DemixError(
            f"Fitting runs takes at least {least_left} rows, but held_out {share:g} of {rows} rows "
            f"leaves {left}; give more rows or a smaller held_out."
        )
