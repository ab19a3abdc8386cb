"""How well each run agrees with the consensus of the others, on rows that no map has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from demix.diagnostics.maps import align, common_maps, mean_of
from demix.theory.setting import Equivalence

# Draws of blocks and runs for the intervals, and shufflings for the null.
_DRAWS, _AT_ONCE, _SHUFFLES = 1000, 100, 10
_LEVEL = 0.95

Latents = Sequence[np.ndarray]
"""Of each run, an array ``(N, n)`` of float64."""


@dataclass(frozen=True, eq=False)
class Stability:
    """Agreement of each of ``n`` dimensions.

    Attributes
    ----------
    stability, low, high : ndarray (n,)
        Held-out R² of each run against the consensus of the others, the mean over runs, and its
        95 % interval over blocks of rows and over runs.
    null : ndarray (n,)
        The same with the rows of a run shuffled, the largest of ten.
    per_run : ndarray (R, n)
        The R² of each run.
    """

    stability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    null: np.ndarray
    per_run: np.ndarray


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of each block: its size ``(G,)``, and squares and sums ``(R, G, n)`` over its rows."""

    sizes: np.ndarray
    errors: np.ndarray
    squares: np.ndarray
    totals: np.ndarray

    def r2(self, weights: np.ndarray) -> np.ndarray:
        """Return the R² ``(B, R, n)`` for weights ``(B, G)`` of blocks; 0 where nothing varies."""

        def over_blocks(x: np.ndarray) -> np.ndarray:
            return np.tensordot(weights, x, axes=(1, 1))

        squares, rows = over_blocks(self.squares), weights @ self.sizes
        varied = squares - over_blocks(self.totals) ** 2 / rows[:, None, None]
        moves = varied > 1e-12 * squares
        return np.where(moves, 1 - over_blocks(self.errors) / np.where(moves, varied, 1.0), 0.0)


def stability(
    to_align: Latents,
    to_test: Latents,
    blocks: np.ndarray,
    equivalence: Equivalence,
    *,
    in_time: bool,
    seed: int = 0,
) -> Stability:
    r"""Measure how well each run predicts the consensus of all others.

    .. math:: R^2_{rj} = 1 - \frac{\sum_i (m_r(z_{ri}) - c^{-r}_i)_j^2}
              {\sum_i (c^{-r}_{ij} - \bar c^{-r}_j)^2}

    with the consensus :math:`c^{-r}` of the runs without :math:`r`, in the coordinates of the
    consensus of all, and the best map :math:`m_r` of the equivalence class to it. All maps are
    fitted to the rows ``to_align``, the sums are over the rows ``to_test``; the stability of
    dimension ``j`` is the mean over runs.

    The interval is a bootstrap over blocks of rows and, around each of these, over runs, whose
    deviations are widened by :math:`\sqrt{R / (R - 1)}` because they are few. For the null the rows
    of run ``r`` are in another order, rotated as a whole if they are in time order, which keeps
    neighbours together.

    Latents are float64; rows of different ``blocks`` ``(K,)`` count as independent.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.stability import stability
    >>> from demix.theory.setting import Equivalence
    >>> z = np.random.default_rng(0).normal(size=(400, 2))
    >>> runs = [z, -3 * z + 1]
    >>> halves = [run[:200] for run in runs], [run[200:] for run in runs]
    >>> found = stability(*halves, np.arange(200) % 20, Equivalence("affine"), in_time=False)
    >>> found.low.round(6), bool(found.null.max() < 0.1)
    (array([1., 1.]), True)
    """
    random = np.random.default_rng([seed, 1])
    orders = [
        (_order(len(to_align[0]), random, in_time), _order(len(to_test[0]), random, in_time))
        for _ in range(_SHUFFLES)
    ]
    sums, null = _left_out(to_align, to_test, blocks, equivalence, orders)
    per_run = sums.r2(np.ones((1, len(sums.sizes))))[0]
    low, high = _interval(sums, random)
    return Stability(per_run.mean(axis=0), low, high, null, per_run)


def mean_stability(to_align: Latents, to_test: Latents, equivalence: Equivalence) -> float:
    """Return the mean of :func:`stability` over dimensions, without interval and null."""
    one = np.zeros(len(to_test[0]), dtype=np.int64)
    sums, _ = _left_out(to_align, to_test, one, equivalence, [])
    return float(sums.r2(np.ones((1, 1))).mean())


def _left_out(
    to_align: Latents,
    to_test: Latents,
    blocks: np.ndarray,
    equivalence: Equivalence,
    orders: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[_Sums, np.ndarray]:
    """Leave out each run in turn; return sums over blocks, and the null ``(n,)``."""
    count, n = len(to_align), to_align[0].shape[1]
    _, member, sizes = np.unique(blocks, return_inverse=True, return_counts=True)

    def by_block(x: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(member, column, len(sizes)) for column in x.T], axis=1)

    everyone = mean_of(common_maps(to_align, equivalence), to_align, equivalence)
    errors, squares, totals = [], [], []
    null = np.zeros((len(orders), n))
    for r in range(count):
        others = [s for s in range(count) if s != r]
        maps = common_maps([to_align[s] for s in others], equivalence)
        target = mean_of(maps, [to_align[s] for s in others], equivalence)
        to_everyone = align(target, everyone, equivalence)
        target = to_everyone(target)
        test_target = to_everyone(mean_of(maps, [to_test[s] for s in others], equivalence))
        # Around the mean, which changes no R²: squares of large numbers would lose digits.
        centre = test_target.mean(axis=0)
        own = align(to_align[r], target, equivalence)
        errors.append(by_block((own(to_test[r]) - test_target) ** 2))
        squares.append(by_block((test_target - centre) ** 2))
        totals.append(by_block(test_target - centre))
        varied = np.maximum(squares[-1].sum(axis=0), np.finfo(float).tiny)
        for k, (align_order, test_order) in enumerate(orders):
            chance = align(to_align[r][align_order], target, equivalence)
            missed = np.square(chance(to_test[r][test_order]) - test_target).sum(axis=0)
            null[k] += (1 - missed / varied) / count
    worst = null.max(axis=0) if len(orders) else np.zeros(n)
    return _Sums(sizes, np.stack(errors), np.stack(squares), np.stack(totals)), worst


def _interval(sums: _Sums, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    count, blocks = len(sums.errors), len(sums.sizes)
    wider = np.sqrt(count / (count - 1))
    drawn = []
    for _ in range(_DRAWS // _AT_ONCE):
        weights = random.multinomial(blocks, np.full(blocks, 1 / blocks), size=_AT_ONCE)
        runs = random.multinomial(count, np.full(count, 1 / count), size=_AT_ONCE) / count
        values = sums.r2(weights.astype(float))
        mean = values.mean(axis=1)
        drawn.append(mean + wider * (np.einsum("br,brn->bn", runs, values) - mean))
    low, high = np.quantile(np.concatenate(drawn), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return low, np.minimum(high, 1.0)


def _order(rows: int, random: np.random.Generator, in_time: bool) -> np.ndarray:
    """Return another order of the rows ``(rows,)``."""
    if not in_time:
        return random.permutation(rows)
    return np.roll(np.arange(rows), int(random.integers(rows // 4, rows - rows // 4)))
