"""Noise on the sphere by the length of the chord, of any shape."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Generator, Similarity, check_positive, rand, randn
from demix.distributions.noise_model import NoiseModel
from demix.spaces.base import Space
from demix.spaces.sphere import Sphere

# A fit makes hundreds of tables, so that they are short.
_POINTS = 1024


class GeneralizedVonMisesFisher(NoiseModel):
    r"""The density :math:`\propto \exp(-(|\tilde z - z|_2 / \lambda)^p)` on the unit sphere.

    With ``p = 2`` it is von Mises-Fisher of concentration :math:`\kappa = 2 / \lambda^2`. Integrals
    and samples come from a table of 1024 angles.

    Parameters
    ----------
    space : Sphere
        The unit sphere.
    p, scale : float
        The shape and the scale :math:`\lambda`.

    Examples
    --------
    >>> import torch
    >>> from demix import Sphere
    >>> from demix.distributions.generalized_von_mises_fisher import GeneralizedVonMisesFisher
    >>> generator = torch.Generator().manual_seed(0)
    >>> noise = GeneralizedVonMisesFisher(Sphere(4), p=2.0, scale=0.3)
    >>> anchors = Sphere(4).uniform(2000, generator=generator).double()
    >>> found = noise.fitted(noise.sample(anchors, generator=generator), anchors, shape=True)
    >>> 1.7 < found.p < 2.3, 0.27 < found.scale < 0.33
    (True, True)
    """

    def __init__(self, space: Space, p: float, scale: float) -> None:
        if not isinstance(space, Sphere) or space.radius != 1:
            raise DemixError(
                f"A von Mises-Fisher distribution needs the unit sphere, but got {space!r}."
            )
        self.space = space
        self.p = check_positive(p, "The shape p of a generalised von Mises-Fisher distribution")
        self.scale = check_positive(scale, "The scale of a von Mises-Fisher distribution")
        self.kappa = 2 / self.scale**2

    @property
    def similarity(self) -> Similarity:
        """The dot product at the rate ``kappa``; exact for ``p = 2``."""
        return Similarity("dot", self.kappa, exact=self.p == 2)

    def with_noise(self, p: float, scale: float) -> GeneralizedVonMisesFisher:
        """Return the noise of another shape and scale on the same sphere."""
        return GeneralizedVonMisesFisher(self.space, p, scale)

    def sample(self, anchors: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Draw the angle by inverting its distribution function, the direction uniformly."""
        below, angles = self._table
        unit = rand(anchors.shape[:-1], anchors, generator)
        angle = interpolated(unit, below, angles).unsqueeze(-1)
        tangent = self.residuals(randn(anchors.shape, anchors, generator), anchors)
        tangent = torch.nn.functional.normalize(tangent, dim=-1)
        return self.space.project(angle.cos() * anchors + angle.sin() * tangent)

    def log_prob(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the density with respect to the area of the sphere."""
        log_density = -((z - anchors).norm(dim=-1) / self.scale).pow(self.p) - self._log_area
        return torch.where(self.space.contains(z), log_density, -torch.inf)

    def mean_entropy(self) -> float:
        """Return the entropy, the same for every anchor."""
        angles, energy, weights = self._grid
        mean = np.trapezoid(energy * weights, angles) / np.trapezoid(weights, angles)
        return self._log_area + float(mean)

    def quantiles(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the quantile ``(N, 1)`` of the angle."""
        below, angles = self._table
        # From the chord: the cosine of a small angle has no digits left.
        angle = 2 * ((z - anchors).norm(dim=-1) / 2).clamp(0, 1).asin()
        return interpolated(angle, angles, below)[:, None]

    def residuals(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the part of ``z`` that is tangent at its anchor."""
        return z - (z * anchors).sum(dim=-1, keepdim=True) * anchors

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Angles, denser where they are small, their energy, and the density of each."""
        angles = np.pi * np.linspace(0, 1, _POINTS) ** 2
        energy = (2 * np.sin(angles / 2) / self.scale) ** self.p
        return angles, energy, np.exp(-energy) * np.sin(angles) ** (self.space.dim - 2)

    @cached_property
    def _log_area(self) -> float:
        angles, _, weights = self._grid
        ring = Sphere(self.space.dim - 1).log_volume if self.space.dim > 2 else math.log(2)
        return math.log(max(float(np.trapezoid(weights, angles)), 1e-300)) + ring

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor]:
        """The distribution function of the angle, and the angles."""
        angles, _, density = self._grid
        steps = np.diff(angles) * (density[1:] + density[:-1]) / 2
        below = np.concatenate([[0], np.cumsum(steps)])
        if below[-1] == 0:  # the scale is smaller than the first step of the grid
            below[1:] = 1
        return torch.from_numpy(below / below[-1]), torch.from_numpy(angles)

    def __repr__(self) -> str:
        return f"GeneralizedVonMisesFisher({self.space!r}, p={self.p:g}, scale={self.scale:g})"


def interpolated(x: Tensor, xs: Tensor, ys: Tensor) -> Tensor:
    """Return the linear interpolation at ``x`` of a table with ascending ``xs``."""
    xs, ys = xs.to(x), ys.to(x)
    cell = torch.searchsorted(xs, x, right=True).clamp_(1, len(xs) - 1)
    below, above = xs[cell - 1], xs[cell]
    share = (x - below) / (above - below).clamp_min(torch.finfo(x.dtype).tiny)
    return ys[cell - 1] + (ys[cell] - ys[cell - 1]) * share.clamp(0, 1)
