"""Materials, hues as colours, and light as bytes."""

from __future__ import annotations

from functools import cache

import numpy as np

from demix.papers.scenes.geometry import dot


def hue_colour(hue: float, saturation: float) -> np.ndarray:
    """Return the linear colour ``(3,)`` of a hue in turns, of full value.

    See Smith (1978), *Color Gamut Transform Pairs*; its formulas hold for hues in ``[0, 1)``.
    """
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
    r"""Return the share of unpolarised light that a dielectric reflects (Cook and Torrance, 1982).

    With :math:`g^2 = n^2 - 1 + c^2`,

    .. math:: F(c) = \frac{(g - c)^2}{2 (g + c)^2}
              \left(1 + \frac{(c (g + c) - 1)^2}{(c (g - c) + 1)^2}\right).
    """
    g = np.sqrt(cosine**2 + cosine.dtype.type(index**2 - 1))
    less, more = g - cosine, g + cosine
    half = (less / more) ** 2 / 2
    share: np.ndarray = half * (1 + ((cosine * more - 1) / (cosine * less + 1)) ** 2)
    return share


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
    masked: np.ndarray = np.where(a < np.float32(1.6), full / known - 1, 0)
    return masked
