"""Maps of an equivalence class between runs, and how well runs agree on rows no map has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from demix._support.errors import DemixError
from demix.metrics.regression import correlate
from demix.theory.setting import Equivalence

_ROUNDS, _TOLERANCE = 100, 1e-10  # of the mean and the maps to it in turn; a few are usual
_FLAT = 1e-7  # a direction with a smaller share of the largest spread is rounding, and left out
_DRAWS, _AT_ONCE, _SHUFFLES = 1000, 100, 10  # of blocks and runs for intervals; for the null
_LEVEL = 0.95

Latents = Sequence[np.ndarray]
"""Of each run, an array ``(N, n)`` of float64."""


@dataclass(frozen=True, eq=False)
class Map:
    """The map ``z -> z @ matrix + shift``, with arrays ``(n, n)`` and ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.maps import Map
    >>> Map(2 * np.eye(2), np.array([0.0, 1.0]))(np.array([[1.0, 1.0]]))
    array([[2., 3.]])
    """

    matrix: np.ndarray
    shift: np.ndarray

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Map rows ``(N, n)``."""
        return np.asarray(z @ self.matrix + self.shift)

    def then(self, other: Map) -> Map:
        """Return the map that applies this one first."""
        return Map(self.matrix @ other.matrix, other(self.shift[None])[0])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"matrix": self.matrix.tolist(), "shift": self.shift.tolist()}


def align(x: np.ndarray, y: np.ndarray, equivalence: Equivalence) -> Map:
    r"""Return the map of an equivalence class that takes ``x`` nearest to ``y``.

    - orthogonal: :math:`\min_{c, Q} |c X Q - Y|` (Procrustes), about the means unless latents lie
      on a sphere around the origin;
    - permutation: each target gets its own source so that the sum of :math:`|r|` is largest
      (Hungarian algorithm), then a least-squares line;
    - affine and linear: least squares.

    Latents ``(N, n)`` are of the same rows (Schönemann 1966, A generalized solution of the
    orthogonal Procrustes problem).

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.maps import align
    >>> from demix.theory.setting import Equivalence
    >>> z = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = align(z, 3 - 2 * z[:, ::-1], Equivalence("permutation"))
    >>> found.matrix.round(9) + 0.0, found.shift.round(9)
    (array([[ 0., -2.],
           [-2.,  0.]]), array([3., 3.]))
    """
    if len(x) != len(y):
        raise DemixError(f"Latents to align must be of the same rows, not {len(x)} and {len(y)}.")
    if equivalence.sphere:
        return Map(_rotation(x, y), np.zeros(y.shape[1]))
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    x, y = x - x_mean, y - y_mean
    if equivalence.name == "orthogonal":
        matrix = _rotation(x, y)
    elif equivalence.name == "permutation":
        matrix = _matching(x, y)
    else:
        matrix = np.linalg.lstsq(x, y, rcond=_FLAT)[0]
    return Map(matrix, y_mean - x_mean @ matrix)


def _rotation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rotation, strength = orthogonal_procrustes(x, y)
    return np.asarray(rotation * (strength / max(np.square(x).sum(), np.finfo(float).tiny)))


def _matching(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    size = np.square(x).sum(axis=0)
    targets, sources = linear_sum_assignment(np.abs(correlate(x, y)), maximize=True)
    matrix = np.zeros((x.shape[1], y.shape[1]))
    shared = (x[:, sources] * y[:, targets]).sum(axis=0)
    matrix[sources, targets] = shared / np.where(size[sources] > 0, size[sources], 1.0)
    return matrix


def common_maps(runs: Sequence[np.ndarray], equivalence: Equivalence) -> list[Map]:
    r"""Return a map for each run, so that the mapped runs agree as well as possible.

    - orthogonal: generalised Procrustes of runs of unit size (Gower 1975, Generalized Procrustes
      analysis), then turned so that dimension 1 is the direction that runs agree on most;
    - affine and linear: the directions that all runs predict best at once (MAXVAR; Kettenring 1971,
      Canonical analysis of several sets of variables), uncorrelated, of mean 0 and variance 1,
      those that runs agree on most first: eigenvectors of :math:`\sum_r Y_r Y_r^T` of the whitened
      runs :math:`Y_r`;
    - permutation: runs of mean 0 and variance 1 matched to the one that is most like all
      others, which gives order and signs, then to the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.maps import common_maps
    >>> from demix.theory.setting import Equivalence
    >>> z = np.random.default_rng(0).normal(size=(100, 2))
    >>> first, second = common_maps([z, 5 - 3 * z], Equivalence("affine"))
    >>> np.allclose(first(z), second(5 - 3 * z))
    True
    """
    if equivalence.name == "orthogonal":
        return _procrustes(runs, centred=not equivalence.sphere)
    return (_matched if equivalence.name == "permutation" else _canonical)(runs)


def mean_of(maps: Sequence[Map], latents: Latents, equivalence: Equivalence) -> np.ndarray:
    """Return the mean ``(N, n)`` of mapped runs; on a sphere it is projected back."""
    mapped = (map_(z) for map_, z in zip(maps, latents, strict=True))
    mean = np.asarray(sum(mapped)) / len(maps)  # in the memory of one run
    if equivalence.sphere:
        mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.finfo(float).tiny)
    return mean


def _procrustes(runs: Sequence[np.ndarray], *, centred: bool) -> list[Map]:
    n = runs[0].shape[1]
    shifts = [-run.mean(axis=0) if centred else np.zeros(n) for run in runs]
    moved = [run + shift for run, shift in zip(runs, shifts, strict=True)]
    sizes = [float(np.sqrt(np.square(run).sum(axis=1).mean())) or 1.0 for run in moved]
    unit = [run / size for run, size in zip(moved, sizes, strict=True)]
    mean, turned = unit[0], unit
    rotations = [np.eye(n) for _ in runs]
    for _ in range(_ROUNDS):
        rotations = [orthogonal_procrustes(run, mean)[0] for run in unit]
        turned = [run @ rotation for run, rotation in zip(unit, rotations, strict=True)]
        before, mean = mean, np.mean(turned, axis=0)
        if np.square(mean - before).mean() <= _TOLERANCE * np.square(mean).mean():
            break
    apart = sum(((run - mean).T @ (run - mean) for run in turned), np.zeros((n, n)))
    axes = _upright(np.linalg.eigh(apart)[1])  # in the order of growing disagreement
    matrices = [r @ axes / size for r, size in zip(rotations, sizes, strict=True)]
    return [Map(m, shift @ m) for m, shift in zip(matrices, shifts, strict=True)]


def _canonical(runs: Sequence[np.ndarray]) -> list[Map]:
    count, n = len(runs), runs[0].shape[1]
    whitened = [_whitening(run) for run in runs]
    white = [map_(run) for map_, run in zip(whitened, runs, strict=True)]
    side_by_side = np.concatenate(white, axis=1)
    values, vectors = np.linalg.eigh(side_by_side.T @ side_by_side / len(side_by_side))
    values, vectors = values[::-1][:n], vectors[:, ::-1][:, :n]
    weights = _upright(vectors) * (count / np.sqrt(np.maximum(values, _FLAT)))
    turns = (Map(weight, np.zeros(n)) for weight in np.split(weights, count))
    return list(map(Map.then, whitened, turns))


def _matched(runs: Sequence[np.ndarray]) -> list[Map]:
    count, n = len(runs), runs[0].shape[1]
    scaled = [_scaling(run) for run in runs]
    standard = [map_(run) for map_, run in zip(scaled, runs, strict=True)]
    likeness = np.zeros(count)
    for r in range(count):
        for s in range(r):
            matched = np.abs(correlate(standard[r], standard[s]))
            likeness[[r, s]] += matched[linear_sum_assignment(matched, maximize=True)].sum()
    mean = standard[int(likeness.argmax())]
    moves = [np.zeros((n, n)) for _ in runs]
    for _ in range(_ROUNDS):
        before, moves = moves, [_signed_order(run, mean) for run in standard]
        if np.array_equal(moves, before):
            break
        mean = np.mean([run @ move for run, move in zip(standard, moves, strict=True)], axis=0)
    final = _scaling(mean, centred=False)  # the mean of runs that differ has a smaller variance
    return [
        map_.then(Map(move, np.zeros(n))).then(final)
        for map_, move in zip(scaled, moves, strict=True)
    ]


def _signed_order(run: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the matrix that assigns the most similar dimension of a run to each target."""
    likeness = correlate(run, target)  # (targets, dimensions of the run)
    targets, own = linear_sum_assignment(np.abs(likeness), maximize=True)
    move = np.zeros_like(likeness)
    move[own, targets] = np.where(likeness[targets, own] < 0, -1.0, 1.0)
    return move


def _scaling(run: np.ndarray, *, centred: bool = True) -> Map:
    spread = run.std(axis=0)
    scale = 1 / np.where(spread > _FLAT * np.abs(run).max(axis=0, initial=0.0), spread, 1.0)
    return Map(np.diag(scale), -run.mean(axis=0) * scale * centred)


def _whitening(run: np.ndarray) -> Map:
    centre = run.mean(axis=0)
    _, sizes, axes = np.linalg.svd(run - centre, full_matrices=False)
    kept = sizes > _FLAT * max(sizes[0], np.finfo(float).tiny)
    scale = np.where(kept, np.sqrt(len(run)) / np.where(kept, sizes, 1.0), 0.0)
    matrix = axes.T * scale
    return Map(matrix, -centre @ matrix)


def _upright(vectors: np.ndarray) -> np.ndarray:
    """Return eigenvectors with signs that do not depend on the linear algebra library."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1, 1))


@dataclass(frozen=True, eq=False)
class Stability:
    """Held-out R² of each run against the consensus of the others, of each of ``n`` dimensions.

    The mean over runs, its 95 % interval over blocks and runs, and the largest of ten for shuffled
    rows, all ``(n,)``; and of each run ``(R, n)``.
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

    The interval is a bootstrap over independent ``blocks`` ``(K,)`` of rows and, around each of
    these, over runs, whose deviations are widened by :math:`\sqrt{R / (R - 1)}`. For the null the
    rows of run ``r`` are in another order, which keeps neighbours together if they are ``in_time``.
    """
    random = np.random.default_rng([seed, 1])
    orders = [
        (_order(len(to_align[0]), random, in_time), _order(len(to_test[0]), random, in_time))
        for _ in range(_SHUFFLES)
    ]
    sums, null = _left_out(to_align, to_test, blocks, equivalence, orders)
    per_run = sums.r2(np.ones((1, len(sums.sizes))))[0]
    count, number = len(per_run), len(sums.sizes)
    drawn = []
    for _ in range(_DRAWS // _AT_ONCE):
        weights = random.multinomial(number, np.full(number, 1 / number), size=_AT_ONCE)
        runs = random.multinomial(count, np.full(count, 1 / count), size=_AT_ONCE) / count
        values = sums.r2(weights.astype(float))
        mean = values.mean(axis=1)
        wider = np.sqrt(count / (count - 1)) * (np.einsum("br,brn->bn", runs, values) - mean)
        drawn.append(mean + wider)
    low, high = np.quantile(np.concatenate(drawn), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return Stability(per_run.mean(axis=0), low, np.minimum(high, 1.0), null, per_run)


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
        centre = test_target.mean(axis=0)  # squares of large numbers would lose digits
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


def _order(rows: int, random: np.random.Generator, in_time: bool) -> np.ndarray:
    """Return another order of the rows ``(rows,)``."""
    if not in_time:
        return random.permutation(rows)
    return np.roll(np.arange(rows), int(random.integers(rows // 4, rows - rows // 4)))
