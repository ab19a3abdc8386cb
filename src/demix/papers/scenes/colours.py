"""Hues as colours, and light as bytes."""

from __future__ import annotations

from functools import cache

import numpy as np


def hue_colour(hue: float, saturation: float) -> np.ndarray:
    """Return the linear colour ``(3,)`` of a hue in turns, of full value.

    Any hue is brought into ``[0, 1)`` first: formulas for HSV hold there only, and outside of it
    leave the range of colours.

    References
    ----------
    A. R. Smith (1978). *Color Gamut Transform Pairs.* SIGGRAPH.

    Examples
    --------
    >>> from demix.papers.scenes.colours import hue_colour
    >>> hue_colour(-1 / 6, 1.0).round(6).tolist()  # magenta, as a hue of 5/6
    [1.0, 0.0, 1.0]
    """
    sixths = (6 * (hue % 1.0) + np.array([0.0, 4.0, 2.0])) % 6
    pure = np.clip(np.abs(sixths - 3) - 1, 0, 1)
    return 1 - saturation * (1 - pure)


_LEVELS = 1 << 16


def as_bytes(light: np.ndarray) -> np.ndarray:
    """Return linear light as sRGB bytes; what is above 1 is cut off.

    References
    ----------
    IEC 61966-2-1 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers.scenes.colours import as_bytes
    >>> as_bytes(np.array([0.0, 0.5, 2.0], dtype=np.float32)).tolist()
    [0, 188, 255]
    """
    level = np.minimum(light, np.float32(1)) * np.float32(_LEVELS - 1) + np.float32(0.5)
    return _table()[level.astype(np.int32)]


@cache
def _table() -> np.ndarray:
    light = np.linspace(0, 1, _LEVELS)
    bent = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(255 * bent).astype(np.uint8)
