"""Vectors, a camera and its rays.

Vectors are float32 arrays ``(3, M)``, one row a coordinate: each operation then runs over long,
contiguous rows. Matrix products are written out, because a BLAS may give other bits with other
numbers of threads, and images must not depend on that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PLACES = 4
"""Pixels are sampled at 2 x 2 places."""


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
    r"""Return the rotation :math:`R_z(c) R_y(b) R_x(a)` of three Euler angles, in float64."""
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


@dataclass(frozen=True)
class Camera:
    """A camera at ``eye`` that looks at ``target``, z upwards; ``angle`` is its field of view."""

    eye: tuple[float, float, float]
    target: tuple[float, float, float]
    angle: float

    def rays(self, size: int) -> np.ndarray:
        """Return unit directions ``(3, PLACES * size * size)``, as float32.

        Places within the pixel come first, then rows from the top, then columns: a mean over
        places is a mean over the first axis of ``(PLACES, size, size)``.
        """
        forward = np.array(self.target, dtype=float) - np.array(self.eye, dtype=float)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        reach = np.tan(self.angle / 2)
        halves = (np.arange(2 * size) + 0.5) / size - 1
        # Two places a pixel and axis: (pixel, place).
        halves = (reach * halves).reshape(size, 2)
        shape = (2, 2, size, size)
        across = np.broadcast_to(halves.T[None, :, None, :], shape).reshape(PLACES, -1)
        down = np.broadcast_to(halves.T[:, None, :, None], shape).reshape(PLACES, -1)
        rays = (
            forward[:, None]
            + right[:, None] * across.reshape(1, -1)
            - up[:, None] * down.reshape(1, -1)
        )
        rays /= np.linalg.norm(rays, axis=0)
        return rays.astype(np.float32)
