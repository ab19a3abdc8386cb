"""A pinhole camera, and four rays for each of its pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demix.papers.scenes.lights import PLACES


@dataclass(frozen=True)
class Camera:
    """A camera that looks at a point, with z upwards.

    Attributes
    ----------
    eye, target : tuple of float
        Where it stands and what it looks at.
    angle : float
        The field of view of the square picture, in radians.

    Examples
    --------
    >>> from demix.papers.scenes.camera import Camera
    >>> Camera((8, 0, 8), (0, 0, 0), 1.0).rays(64).shape
    (3, 16384)
    """

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
