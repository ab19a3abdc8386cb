"""Noise on the sphere: the von Mises-Fisher conditional of Theorem 2, and of other shapes."""

import math
from functools import cached_property, lru_cache

import numpy as np
import torch
from scipy import integrate, special
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Generator, NoiseModel, Similarity, check_positive, rand
from demix.spaces.base import Space
from demix.spaces.kinds import Sphere

_POINTS = 2**14
_SHORT = 1024  # a fit makes hundreds of tables, so that those are short
# Below, the series in kappa^2 is taken: it has no 0/0 at a small kappa or a large n, and e^600 is
# still a float64.
_SERIES_UP_TO = 600
_TINY = 1e-290  # Bessel functions below it have lost digits


class GeneralizedVonMisesFisher(NoiseModel):
    r"""The density :math:`\propto \exp(-(|\tilde z - z|_2 / \lambda)^p)` on the unit sphere.

    With ``p = 2`` it is von Mises-Fisher of concentration :math:`\kappa = 2 / \lambda^2`. Integrals
    and samples come from a table of 1024 angles.
    """

    def __init__(self, space: Space, p: float, scale: float) -> None:
        if not isinstance(space, Sphere) or space.radius != 1:
            raise DemixError(f"Von Mises-Fisher noise needs the unit sphere, but got {space!r}.")
        self.space = space
        self.p = check_positive(p, "The shape p of a generalised von Mises-Fisher distribution")
        self.scale = check_positive(scale, "The scale of a von Mises-Fisher distribution")
        self.kappa = 2 / self.scale**2

    @property
    def similarity(self) -> Similarity:
        """The dot product at the rate ``kappa``; exact for ``p = 2``."""
        return Similarity("dot", self.kappa, exact=self.p == 2)

    def with_noise(self, p: float, scale: float) -> "GeneralizedVonMisesFisher":
        """Return the noise of another shape and scale on the same sphere."""
        return GeneralizedVonMisesFisher(self.space, p, scale)

    def sample(self, anchors: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Draw the angle by inverting its distribution function, the direction uniformly."""
        below, angles = self._table
        unit = rand(anchors.shape[:-1], anchors, generator)
        angle = _interpolated(unit, below, angles).unsqueeze(-1)
        free = rand(anchors.shape, anchors, generator, normal=True)
        tangent = self.residuals(free, anchors)
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
        return _interpolated(angle, angles, below)[:, None]

    def residuals(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the part of ``z`` that is tangent at its anchor."""
        return z - (z * anchors).sum(dim=-1, keepdim=True) * anchors

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Angles, denser where they are small, their energy, and the density of each."""
        angles = np.pi * np.linspace(0, 1, _SHORT) ** 2
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


class VonMisesFisher(GeneralizedVonMisesFisher):
    r"""The density :math:`p(z~ | z) = C_p^{-1} e^{\kappa z^T z~}` on the unit sphere (Eq. 2).

    Examples
    --------
    >>> from demix import Sphere, VonMisesFisher
    >>> round(VonMisesFisher(Sphere(10), kappa=10.0).mean_resultant_length, 4)
    0.6337
    """

    def __init__(self, space: Space, kappa: float) -> None:
        kappa = check_positive(kappa, "kappa of a von Mises-Fisher distribution")
        super().__init__(space, 2.0, math.sqrt(2 / kappa))
        self.kappa = kappa

    @property
    def log_normaliser(self) -> float:
        r""":math:`\log C_p = \log \int e^{\kappa \eta^T z} dz` (Eq. 10)."""
        return log_normaliser(self.space.dim, self.kappa)

    @property
    def mean_resultant_length(self) -> float:
        """The mean of ``z^T z~``, a ratio of Bessel functions."""
        return mean_resultant_length(self.space.dim, self.kappa)

    def log_prob(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the density with respect to the area of the sphere."""
        log_density = self.kappa * (z * anchors).sum(dim=-1) - self.log_normaliser
        return torch.where(self.space.contains(z), log_density, -torch.inf)

    def mean_entropy(self) -> float:
        """Return ``log C_p - kappa A(kappa)``, the same for every anchor."""
        return self.log_normaliser - self.kappa * self.mean_resultant_length

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor]:
        return _angle_table(self.space.dim, self.kappa)


def log_normaliser(dim: int, kappa: float) -> float:
    r"""Return :math:`\log C = \log (2\pi)^{n/2} I_{n/2-1}(\kappa) / \kappa^{n/2-1}`."""
    order = dim / 2 - 1
    if kappa < _SERIES_UP_TO:
        log_bessel = math.log(special.hyp0f1(order + 1, kappa**2 / 4))
        log_bessel -= order * math.log(2) + math.lgamma(order + 1)
    else:
        log_bessel = _log_ive(order, kappa) + kappa - order * math.log(kappa)
    return dim / 2 * math.log(2 * math.pi) + log_bessel


def mean_resultant_length(dim: int, kappa: float) -> float:
    r"""Return :math:`A(\kappa) = I_{n/2}(\kappa) / I_{n/2-1}(\kappa)`, the mean of ``z^T z~``."""
    order = dim / 2 - 1
    if kappa < _SERIES_UP_TO:
        quarter = kappa**2 / 4
        series = special.hyp0f1(order + 2, quarter) / special.hyp0f1(order + 1, quarter)
        return float(kappa / dim * series)
    above, below = special.ive(order + 1, kappa), special.ive(order, kappa)
    if above < _TINY:
        return math.exp(_log_ive(order + 1, kappa) - _log_ive(order, kappa))
    return float(above / below)


def _log_ive(order: float, kappa: float) -> float:
    found = float(special.ive(order, kappa))
    if found >= _TINY:
        return math.log(found)
    # Where the Bessel function underflows its order is large, and three terms of the uniform
    # expansion (Abramowitz and Stegun 9.7.7) are exact to more than ten digits.
    root = math.hypot(order, kappa)
    t = order / root
    series = 1 + (3 * t - 5 * t**3) / (24 * order)
    series += (81 * t**2 - 462 * t**4 + 385 * t**6) / (1152 * order**2)
    exponent = root - kappa + order * math.log(kappa / (order + root))
    return exponent - math.log(2 * math.pi * root) / 2 + math.log(series)


@lru_cache(maxsize=32)
def _angle_table(dim: int, kappa: float) -> tuple[Tensor, Tensor]:
    """Tabulate the distribution function of the angle, density e^(kappa cos) sin^(n-2)."""

    def log_density(angle: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            sine = np.log(np.sin(angle)) if dim > 2 else np.zeros_like(angle)
        return kappa * (np.cos(angle) - 1) + (dim - 2) * sine

    # Lay the grid where all but e^-45 of the density is: a narrow band for a large kappa or n.
    coarse = np.geomspace(1e-9, math.pi, 20001)
    height = log_density(coarse)
    inside = np.flatnonzero(height > height.max() - 45)
    low = 0.0 if inside[0] == 0 else coarse[inside[0] - 1]
    grid = np.linspace(low, coarse[min(inside[-1] + 1, len(coarse) - 1)], _POINTS)
    density = np.exp(log_density(grid) - height.max())
    cumulated = integrate.cumulative_simpson(density, x=grid, initial=0)
    cumulated = np.maximum.accumulate(cumulated) / cumulated[-1]
    return torch.from_numpy(cumulated), torch.from_numpy(grid)


def _interpolated(x: Tensor, xs: Tensor, ys: Tensor) -> Tensor:
    xs, ys = xs.to(x), ys.to(x)
    cell = torch.searchsorted(xs, x, right=True).clamp_(1, len(xs) - 1)
    below, above = xs[cell - 1], xs[cell]
    share = (x - below) / (above - below).clamp_min(torch.finfo(x.dtype).tiny)
    return ys[cell - 1] + (ys[cell] - ys[cell - 1]) * share.clamp(0, 1)
