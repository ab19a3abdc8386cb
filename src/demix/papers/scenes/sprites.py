"""Sprites: white shapes on black, with the factors of dSprites."""

import numpy as np

from demix.papers.scenes.base import Scene
from demix.papers.scenes.lights import as_bytes

_FINE = 4  # points a pixel and axis
# Half a side of the largest square, in image widths: turned by 45 degrees at the rim of its range
# it still fits.
_HALF, _RANGE = 0.17, 0.25


class Sprites(Scene):
    r"""A square, an ellipse or a heart, scaled, turned and moved.

    The factors of dSprites (Matthey et al., 2017) with values in between: scale is
    :math:`(3 + z) / 4`, from 0.5 to 1; the shape turns by :math:`z \pi / 4` and moves by a quarter
    of the picture either way. Within this quarter turn every latent can be read off the image (but
    the two ends of it are one square).
    """

    name = "sprites"
    latents = ("shape", "scale", "orientation", "x", "y")
    categories = {"shape": ("square", "ellipse", "heart")}  # noqa: RUF012  it is a ClassVar
    typical = (0, 0, 0, 0, 0)

    def image(self, latents: np.ndarray, size: int) -> np.ndarray:
        """Return one image ``(size, size, 3)`` of bytes."""
        shape, scale, orientation, x, y = (float(value) for value in latents)
        steps = (np.arange(_FINE * size) + 0.5) / (_FINE * size) - 0.5
        right = steps[None, :] - _RANGE * x
        up = -steps[:, None] - _RANGE * y
        cos, sin = np.cos(np.pi / 4 * orientation), np.sin(np.pi / 4 * orientation)
        unit = _HALF * (3 + scale) / 4
        u, v = (cos * right + sin * up) / unit, (cos * up - sin * right) / unit
        match self.categories["shape"][int(shape)]:
            case "square":
                inside = np.maximum(np.abs(u), np.abs(v)) <= 1
            case "ellipse":
                inside = u**2 + 4 * v**2 <= 1.6
            case _:
                inside = (u**2 + (v + 0.1) ** 2 - 1) ** 3 <= u**2 * (v + 0.1) ** 3
        share = inside.reshape(size, _FINE, size, _FINE).mean(axis=(1, 3))
        return np.repeat(as_bytes(share.astype(np.float32))[..., None], 3, axis=2)
