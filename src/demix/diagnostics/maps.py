"""Maps of an equivalence class: from one set of latents to another, and to common coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from demix._support.errors import DemixError
from demix.metrics.correlation import correlate
from demix.theory.setting import Equivalence

# Rounds that alternate between the mean and the maps to it; a few are usual.
_ROUNDS, _TOLERANCE = 100, 1e-10
# A direction whose spread is below this share of the largest is rounding, and is left out.
_FLAT = 1e-7


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
        raise DemixError(
            f"Latents to align must have one row per sample, but have {len(x)} and {len(y)} rows."
        )
    if equivalence.sphere:
        return Map(_rotation(x, y), np.zeros(y.shape[1]))
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    x, y = x - x_mean, y - y_mean
    if equivalence.name == "orthogonal":
        matrix = _rotation(x, y)
    elif equivalence.name == "permutation":
        matrix = _matching(x, y)
    else:
        # Directions in which latents hardly vary are mostly rounding, and are left out.
        matrix = np.linalg.lstsq(x, y, rcond=1e-7)[0]
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


def mean_of(
    maps: Sequence[Map], latents: Sequence[np.ndarray], equivalence: Equivalence
) -> np.ndarray:
    """Return the mean ``(N, n)`` of mapped runs; on a sphere it is projected back."""
    mean = np.zeros(latents[0].shape)
    for map_, z in zip(maps, latents, strict=True):
        mean += map_(z)
    mean /= len(maps)
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
    return [
        map_.then(Map(weights[r * n : (r + 1) * n], np.zeros(n))) for r, map_ in enumerate(whitened)
    ]


def _matched(runs: Sequence[np.ndarray]) -> list[Map]:
    count, n = len(runs), runs[0].shape[1]
    scaled = [_standard(run) for run in runs]
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
    # The mean of runs that differ has a smaller variance; rescale it to 1.
    final = Map(np.diag(1 / _spread(mean)), np.zeros(n))
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


def _standard(run: np.ndarray) -> Map:
    scale = 1 / _spread(run)
    return Map(np.diag(scale), -run.mean(axis=0) * scale)


def _spread(run: np.ndarray) -> np.ndarray:
    spread = run.std(axis=0)
    return np.where(spread > _FLAT * np.abs(run).max(axis=0, initial=0.0), spread, 1.0)


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
