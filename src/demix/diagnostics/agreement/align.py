"""The best map of a group from one set of latents to another, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from demix._support.validation import check_pair
from demix.diagnostics.agreement.group import Group
from demix.metrics.correlation import correlate


@dataclass(frozen=True, eq=False)
class Map:
    """The map ``z -> z @ matrix + shift``.

    Parameters
    ----------
    matrix : ndarray (n, n) of float64
        Column ``j`` makes dimension ``j`` of the result.
    shift : ndarray (n,) of float64
        What is added.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.agreement.align import Map
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


def align(source: Any, target: Any, group: Group) -> Map:
    r"""Return the map of a group that takes ``source`` nearest to ``target``.

    - orthogonal: :math:`\min_{c, Q} |c X Q - Y|` (Procrustes), about the means unless latents lie
      on a sphere around the origin;
    - signed permutation: each target gets a source of its own so that the sum of :math:`|r|` is
      largest (Hungarian algorithm), then a least-squares line;
    - affine: least squares.

    Parameters
    ----------
    source, target : array (N, n)
        Latents of the same rows.
    group : Group
        The maps that are allowed.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.agreement.group import Group
    >>> from demix.diagnostics.agreement.align import align
    >>> z = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = align(z, 3 - 2 * z[:, ::-1], Group("signed permutation"))
    >>> found.matrix.round(9) + 0.0, found.shift.round(9)
    (array([[ 0., -2.],
           [-2.,  0.]]), array([3., 3.]))
    """
    return fitted(*check_pair(source, target), group)


def fitted(x: np.ndarray, y: np.ndarray, group: Group) -> Map:
    """Return :func:`align` of arrays that were checked already."""
    if group.sphere and group.name == "orthogonal":
        matrix = _rotation(x, y)
        return Map(matrix, np.zeros(y.shape[1]))
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    x, y = x - x_mean, y - y_mean
    if group.name == "orthogonal":
        matrix = _rotation(x, y)
    elif group.name == "affine":
        # Directions in which latents hardly move are left alone, as they are mostly rounding.
        matrix = np.linalg.lstsq(x, y, rcond=1e-7)[0]
    else:
        matrix = _matching(x, y)
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
