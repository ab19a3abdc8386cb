"""Lights with an extent, materials that they shine on, hues as colours, and light as bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from demix.papers.scenes.geometry import PLACES, dot, frame

LOOKS = 4  # each place of a pixel looks at 4 points of a light: 16 in all


def square_points() -> np.ndarray:
    """Return a grid of points ``(LOOKS, PLACES, 2)`` of ``[-1, 1]^2``; looks and places spread."""
    steps = np.array([-0.75, -0.25, 0.25, 0.75]).reshape(2, 2)
    x, y = np.meshgrid(steps.ravel(), steps.ravel(), indexing="ij")
    points = np.stack([x, y], axis=-1).reshape(2, 2, 2, 2, 2)
    # Each axis is (which quarter, which place).
    grid = points.transpose(0, 2, 1, 3, 4).reshape(LOOKS, PLACES, 2)
    look, place = np.ogrid[:LOOKS, :PLACES]
    return grid[(look + place) % LOOKS, place]


def disc_points() -> np.ndarray:
    """Return points ``(LOOKS, PLACES, 2)`` of equal parts of the unit disc (Shirley, Chiu 1997)."""
    square = square_points()
    a, b = square[..., 0], square[..., 1]
    wide = np.abs(a) > np.abs(b)
    radius = np.where(wide, a, b)
    angle = np.where(wide, np.pi / 4 * b / a, np.pi / 2 - np.pi / 4 * a / b)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


@dataclass(frozen=True)
class Light:
    """A light at some place, ready to shine on points of one frame.

    ``points`` ``(LOOKS, PLACES, 3)``, or directions if it is ``far``, are spread over it, in a
    square with ``corners`` ``(4, 3)``. ``power`` is intensity (spot), radiance times area (area) or
    irradiance (sun). Places of the ground look at ``looks`` of its points, those of the object at
    all. ``cone`` is the cosine of half the opening angle, and the width of its soft edge; one that
    is ``flat`` shines with the cosine of the angle to its axis.
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
        """Return ways ``(3, looks, M)`` to the light from points, ``counts`` at each place."""
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
    """Return a spotlight: a disc of intensity ``watts / (4 pi)`` within a cone of smooth edge."""
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
    """Return a horizontal square that shines downwards; of wide shadows, one look is enough."""
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


def hue_colour(hue: float, saturation: float) -> np.ndarray:
    """Return the linear colour ``(3,)`` of a hue in turns, of full value (Smith 1978)."""
    sixths = (6 * (hue % 1.0) + np.array([0.0, 4.0, 2.0])) % 6
    pure = np.clip(np.abs(sixths - 3) - 1, 0, 1)
    return 1 - saturation * (1 - pure)


_LEVELS = 1 << 16


def as_bytes(light: np.ndarray) -> np.ndarray:
    """Return linear light as sRGB bytes (IEC 61966-2-1); light above 1 is cut off."""
    level = np.minimum(light, np.float32(1)) * np.float32(_LEVELS - 1) + np.float32(0.5)
    return _table()[level.astype(np.int32)]


@cache
def _table() -> np.ndarray:
    light = np.linspace(0, 1, _LEVELS)
    bent = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(255 * bent).astype(np.uint8)


# The rubber of 3DIdent: a diffuse ground, velvet towards grazing views, a rough gloss above both.
_VELVET_INDEX, _GLOSS_INDEX = 1.4, 1.2
_VELVET_WIDTH, _GLOSS_WIDTH = 0.6, 0.35
_GLOSS = np.float32(0.8)
_PI = np.float32(np.pi)
_TINY = np.float32(1e-6)


def fresnel(cosine: np.ndarray, index: float) -> np.ndarray:
    """Return the share of unpolarised light that a dielectric reflects (Cook, Torrance 1982)."""
    g = np.sqrt(cosine**2 + cosine.dtype.type(index**2 - 1))
    less, more = g - cosine, g + cosine
    half = (less / more) ** 2 / 2
    return half * (1 + ((cosine * more - 1) / (cosine * less + 1)) ** 2)


class Rubber:
    r"""Rubber seen from a direction: diffuse, velvet and gloss, mixed by two Fresnel terms.

    For light from a direction with half vector ``h``, per unit of irradiance, it sends back
    ``diffuse * colour + gloss``, where, with :math:`F_a` and :math:`F_b` the Fresnel terms of
    index 1.4 and 1.2,

    .. math:: (1 - F_b) \left[(1 - F_a) / \pi + F_a f_{velvet}\right]
              \quad\text{and}\quad 0.8 F_b f_{Beckmann}.

    See Ashikhmin et al. (2000), *A Microfacet-Based BRDF Generator*, and Walter et al. (2007),
    *Microfacet Models for Refraction through Rough Surfaces*, Eqs. 25 to 27.
    """

    def __init__(self, normals: np.ndarray, views: np.ndarray) -> None:
        self.normals, self.views = normals, views
        self.cosine = np.maximum(dot(normals, views), np.float32(1e-3))
        velvet = fresnel(self.cosine, _VELVET_INDEX)
        gloss = fresnel(self.cosine, _GLOSS_INDEX)
        self.plain = (1 - gloss) * (1 - velvet) / _PI
        self.velvet = (1 - gloss) * velvet
        self.gloss = gloss * _GLOSS
        self._masked = _masking(self.cosine)

    def some(self, which: np.ndarray) -> Rubber:
        """Return the rubber at some of the points only."""
        part = object.__new__(Rubber)
        for name, value in vars(self).items():
            setattr(part, name, value[..., which])
        return part

    def responds(self, lights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the part that takes the surface's colour and the part that does not."""
        half = lights + self.views
        half /= np.sqrt(dot(half, half)) + _TINY
        n_h = dot(self.normals, half)
        l_h = np.maximum(dot(lights, half), _TINY)
        n_l = np.maximum(dot(self.normals, lights), np.float32(1e-3))
        n_h2 = np.minimum(n_h * n_h, np.float32(1 - 1e-6))
        sine2 = 1 - n_h2
        # Both distributions of microfacets without their common factor 1 / pi.
        ratio = np.maximum(n_h2 / sine2, _TINY)
        fibres = np.exp(ratio * np.float32(-(_VELVET_WIDTH**-2)))
        fibres *= np.float32(_VELVET_WIDTH**-2)
        fibres /= sine2 * sine2
        facets = np.exp(np.float32(-(_GLOSS_WIDTH**-2)) / ratio)
        facets *= np.float32(_GLOSS_WIDTH**-2)
        facets /= np.maximum(n_h2 * n_h2, _TINY)
        valley = np.minimum(self.cosine, n_l)
        valley *= 2 * np.abs(n_h)
        valley /= l_h
        fibres *= np.minimum(valley, 1)
        facets /= 1 + _masking(n_l) + self._masked
        common = np.float32(0.25 / np.pi) / (self.cosine * n_l)
        return self.plain + self.velvet * fibres * common, self.gloss * facets * common


def _masking(cosine: np.ndarray) -> np.ndarray:
    """Return Smith's Lambda of the Beckmann distribution, in its rational approximation."""
    squared = cosine * cosine
    a = cosine / (np.float32(_GLOSS_WIDTH) * np.sqrt(np.maximum(1 - squared, _TINY)))
    # (1 + L)^-1 = (3.535 a + 2.181 a^2) / (1 + 2.276 a + 2.577 a^2) below 1.6, and 1 above.
    known = a * (np.float32(3.535) + np.float32(2.181) * a)
    full = 1 + a * (np.float32(2.276) + np.float32(2.577) * a)
    return np.where(a < np.float32(1.6), full / known - 1, 0)
