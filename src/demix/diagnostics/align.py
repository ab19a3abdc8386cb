"""The best map of an equivalence class from one set of latents to another, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from demix._support.errors import DemixError
from demix.metrics.correlation import correlate
from demix.theory.setting import Equivalence


@dataclass(frozen=True, eq=False)
class Map:
    """The map ``z -> z @ matrix + shift``, with arrays ``(n, n)`` and ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.align import Map
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

    Parameters
    ----------
    x, y : ndarray (N, n)
        Latents of the same rows.
    equivalence : Equivalence
        The maps that are allowed.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.align import align
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
    targets, sources = linear_sum_assignment(np.abs(correlate(x, y, "pearson")), maximize=True)
    matrix = np.zeros((x.shape[1], y.shape[1]))
    shared = (x[:, sources] * y[:, targets]).sum(axis=0)
    matrix[sources, targets] = shared / np.where(size[sources] > 0, size[sources], 1.0)
    return matrix
