"""Lights with an extent, and points spread over them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from demix.papers.scenes.geometry import PLACES, dot, frame

# Each place of a pixel looks at 4 points of a light: 16 in all.
LOOKS = 4


def square_points() -> np.ndarray:
    """Return points ``(LOOKS, PLACES, 2)`` of the square ``[-1, 1]^2``.

    They are a grid of 4 x 4. What one place of a pixel looks at is spread over all of it, and so
    is what the places of a pixel look at first, or second.
    """
    steps = np.array([-0.75, -0.25, 0.25, 0.75]).reshape(2, 2)
    x, y = np.meshgrid(steps.ravel(), steps.ravel(), indexing="ij")
    points = np.stack([x, y], axis=-1).reshape(2, 2, 2, 2, 2)
    # Each axis is (which quarter, which place).
    grid = points.transpose(0, 2, 1, 3, 4).reshape(LOOKS, PLACES, 2)
    look, place = np.ogrid[:LOOKS, :PLACES]
    return grid[(look + place) % LOOKS, place]


def disc_points() -> np.ndarray:
    """Return points ``(LOOKS, PLACES, 2)`` of the unit disc, each for an equal part of it.

    See P. Shirley, K. Chiu (1997), *A Low Distortion Map between Disk and Square.*
    """
    square = square_points()
    a, b = square[..., 0], square[..., 1]
    wide = np.abs(a) > np.abs(b)
    radius = np.where(wide, a, b)
    angle = np.where(wide, np.pi / 4 * b / a, np.pi / 2 - np.pi / 4 * a / b)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


@dataclass(frozen=True)
class Light:
    """A light at some place, ready to shine on points of one frame.

    ``center`` ``(3,)`` is its middle, or the direction towards it if it is ``far``, and ``axis``
    ``(3,)`` where it shines. ``points`` ``(LOOKS, PLACES, 3)``, or directions, are spread over it,
    in a square with ``corners`` ``(4, 3)``. ``power`` is intensity (spot), radiance times area
    (area) or irradiance (sun). A place of a pixel of ground looks at ``looks`` of its points, one
    of the object at all. ``cone`` is the cosine of half the opening angle, and the width of its
    soft edge; one that is ``flat`` shines with the cosine of the angle to its axis.
    """

    center: np.ndarray
    points: np.ndarray
    corners: np.ndarray
    axis: np.ndarray
    power: float
    looks: int = LOOKS
    cone: tuple[float, float] = (-1.0, 0.0)
    flat: bool = False
    far: bool = False

    def moved(self, turned: np.ndarray, at: np.ndarray) -> Light:
        """Return the light in the frame of an object that is ``turned`` and stands ``at``."""
        origin = np.zeros(3) if self.far else at
        return replace(
            self,
            center=(self.center - origin) @ turned,
            points=(self.points - origin) @ turned,
            axis=self.axis @ turned,
        )

    def towards(self, points: np.ndarray) -> np.ndarray:
        """Return unit vectors ``(3, M)`` from points to the middle of the light."""
        center = self.center.astype(np.float32)[:, None]
        if self.far:
            return np.broadcast_to(center, points.shape)
        ways = center - points
        ways /= np.sqrt(dot(ways, ways))
        return ways

    def ways(self, points: np.ndarray, counts: np.ndarray, looks: int) -> np.ndarray:
        """Return the ways ``(3, looks, M)`` to the points of the light that each place looks at.

        ``points`` ``(3, M)`` are sorted by their place within a pixel, ``counts`` of them at each.
        """
        ends = self.points[:looks].transpose(2, 0, 1).astype(np.float32)
        if self.far:
            # Longer than any scene, so that everything on the way is met.
            ends *= np.float32(100)
        ways = np.repeat(ends, counts, axis=2)
        if not self.far:
            ways -= points[:, None]
        return ways

    def irradiance(self, ways: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """Return what arrives ``(looks, M)`` along ways if nothing is in between."""
        squared = dot(ways, ways)
        inverse = 1 / np.sqrt(squared)
        arrives = dot(ways, normals)
        np.maximum(arrives, 0, out=arrives)
        arrives *= inverse
        if self.far:
            arrives *= np.float32(self.power)
            return arrives
        arrives *= np.float32(self.power) / squared
        edge, width = self.cone
        if self.flat or edge > -1:
            cosine = dot(ways, -self.axis.astype(np.float32)[:, None])
            cosine *= inverse
            if self.flat:
                arrives *= np.maximum(cosine, 0, out=cosine)
            else:
                cosine -= np.float32(edge)
                cosine /= np.float32(width)
                np.minimum(np.maximum(cosine, 0, out=cosine), 1, out=cosine)
                arrives *= cosine * cosine * (3 - 2 * cosine)
        return arrives


def spot(
    at: np.ndarray, target: np.ndarray, *, watts: float, radius: float, angle: float, blend: float
) -> Light:
    """Return a spotlight: a disc that shines alike within a cone about the way to ``target``.

    It radiates what a lamp of so many ``watts`` in all directions would: an intensity of
    ``watts / (4 pi)``. The edge of the cone is a smooth step over the part ``blend`` of it.
    """
    axis = (target - at) / np.linalg.norm(target - at)
    plane = radius * np.stack(frame(axis))
    edge = float(np.cos(angle / 2))
    return Light(
        at,
        at + disc_points() @ plane,
        at + _CORNERS @ plane,
        axis,
        watts / (4 * np.pi),
        cone=(edge, (1 - edge) * blend),
    )


def area(at: np.ndarray, *, side: float, radiance: float) -> Light:
    """Return a horizontal square that shines downwards.

    It gives the ground little light and its shadow there is wide: one look a place is enough.
    """
    plane = side / 2 * np.eye(3)[:2]
    points, corners = at + square_points() @ plane, at + _CORNERS @ plane
    down, power = np.array([0.0, 0.0, -1.0]), radiance * side**2
    return Light(at, points, corners, down, power, looks=1, flat=True)


def sun(*, irradiance: float, angle: float) -> Light:
    """Return a far light straight above that covers so large an ``angle`` of the sky."""
    up = np.array([0.0, 0.0, 1.0])
    plane = np.tan(angle / 2) * np.eye(3)[:2]
    points = up + disc_points() @ plane
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    return Light(up, points, up + _CORNERS @ plane, -up, irradiance, far=True)


_CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
