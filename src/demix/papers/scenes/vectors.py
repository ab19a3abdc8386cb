"""Arithmetic on many vectors at once.

Vectors are float32 arrays ``(3, M)``, one row a coordinate: each operation then runs over long,
contiguous rows. Matrix products are written out, because a BLAS may give other bits with other
numbers of threads, and images must not depend on that.
"""

from __future__ import annotations

import numpy as np


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot products ``(M,)`` of two arrays of vectors ``(3, M)`` or ``(3, 1)``."""
    total: np.ndarray = a[0] * b[0]
    total += a[1] * b[1]
    total += a[2] * b[2]
    return total


def turn(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return ``matrix`` ``(3, 3)`` applied to vectors ``(3, M)``."""
    turned: np.ndarray = matrix[:, 0:1] * vectors[0]
    turned += matrix[:, 1:2] * vectors[1]
    turned += matrix[:, 2:3] * vectors[2]
    return turned


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors ``(3, M)`` scaled to length one."""
    scaled: np.ndarray = vectors / np.sqrt(dot(vectors, vectors))
    return scaled


def euler(angles: np.ndarray) -> np.ndarray:
    r"""Return the rotation :math:`R_z(c) R_y(b) R_x(a)` of three Euler angles, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers.scenes.vectors import euler
    >>> np.allclose(euler(np.array([0, 0, np.pi / 2])) @ [1, 0, 0], [0, 1, 0])
    True
    """
    (ca, cb, cc), (sa, sb, sc) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc],
            [cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc],
            [-sb, sa * cb, ca * cb],
        ]
    )


def frame(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that are orthogonal to ``axis`` ``(3,)`` and to each other."""
    least = np.zeros(3)
    least[np.argmin(np.abs(axis))] = 1.0
    first = np.cross(axis, least)
    first /= np.linalg.norm(first)
    return first, np.cross(axis / np.linalg.norm(axis), first)
