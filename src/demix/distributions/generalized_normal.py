"""Generalised normal distributions, with Laplace and Normal as their cases."""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from scipy import integrate, special
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import SHAPES, Generator, NoiseModel, Similarity, check_positive, rand
from demix.spaces.base import Space
from demix.spaces.kinds import Box, Real, Sphere

_DEEPEST = 37.0  # -log of the smallest survival probability that float64 tells from zero
_POINTS = 2**15  # of the grid up to it


class GeneralizedNormal(NoiseModel):
    r"""Independent noise of density :math:`\propto \exp(-(|z~_i - z_i| / \lambda)^p)`.

    On a box it is truncated exactly, coordinate by coordinate; on a sphere it is added in
    ``R^n`` and projected back, as in the paper's experiments.

    Parameters
    ----------
    space : Real, Box or Sphere
        Where anchors and samples live.
    p : float
        The shape: 1 is Laplace, 2 is Normal (with ``scale = sigma * sqrt(2)``).
    scale : float
        ``lambda``.
    limit : float
        Noise beyond it in any coordinate does not occur; by default all of it does.

    References
    ----------
    Subbotin (1923); Zimmermann et al. (2021), Eq. 5 with :math:`\delta = |.|_p^p / \lambda^p`.

    Examples
    --------
    >>> import torch
    >>> from demix import Box, GeneralizedNormal
    >>> positives = GeneralizedNormal(Box(2), p=3, scale=0.05).sample(torch.full((100, 2), 0.99))
    >>> bool(Box(2).contains(positives).all())
    True
    """

    def __init__(self, space: Space, p: float, scale: float, *, limit: float = math.inf) -> None:
        if not isinstance(space, Real | Box | Sphere):
            raise DemixError(
                f"Generalised normal noise is defined on Real, Box and Sphere, but got {space!r}."
            )
        self.space = space
        self._box = space if isinstance(space, Box) else None
        self.p = check_positive(p, "The shape p of a generalised normal")
        if self.p < SHAPES[0]:
            raise DemixError(f"A generalised normal needs p >= {SHAPES[0]:g}, but got {p!r}.")
        self.scale = check_positive(scale, "The scale of a generalised normal")
        if not limit > 0:
            raise DemixError(f"The limit of the noise must be positive, but got {limit!r}.")
        self.limit = float(limit)

    @property
    def similarity(self) -> Similarity:
        """:math:`-|.|_p^p` at the rate ``scale^-p``; on a sphere only the dot product fits."""
        if self.space.spherical:
            # Small isotropic noise of this variance looks like vMF(radius^2 / variance).
            variance = self.scale**2 * math.exp(math.lgamma(3 / self.p) - math.lgamma(1 / self.p))
            reach = (self.limit / self.scale) ** self.p
            share = [special.gammainc(n / self.p, reach) for n in (3, 1)]
            return Similarity("dot", share[1] / share[0] / variance, exact=False)
        return Similarity(self.p, self.scale**-self.p, exact=self.limit == math.inf)

    def _sides(self, anchors: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probability that untruncated noise stays above the low and below the high."""
        left = right = torch.full_like(anchors, self.limit)
        if self._box is not None:
            low, high = self._box.bounds(anchors)
            left = (anchors - low).clamp(0, self.limit)
            right = (high - anchors).clamp(0, self.limit)
        return half_cdf(left / self.scale, self.p), half_cdf(right / self.scale, self.p)

    def with_noise(self, p: float, scale: float) -> "GeneralizedNormal":
        """Return the noise of another shape and scale on the same space."""
        return GeneralizedNormal(self.space, p, scale, limit=self.limit)

    def sample(self, anchors: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Invert the distribution function: sign and size of the noise from one uniform."""
        left, right = self._sides(anchors)
        signed = rand(anchors.shape, anchors, generator) * (left + right) - left
        below_one = 1 - torch.finfo(anchors.dtype).eps
        size = half_quantile(signed.abs().clamp_max(below_one), self.p)
        return self.space.project(anchors + self.scale * signed.sign() * size)

    def log_prob(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the truncated density; it is unknown for noise projected on a sphere."""
        self._refuse_sphere()
        left, right = self._sides(anchors)
        normaliser = (left + right).log() + math.log(self.scale) + math.lgamma(1 + 1 / self.p)
        noise = (z - anchors).abs()
        log_density = -(noise / self.scale).pow(self.p) - normaliser
        # Adding noise to its anchor rounds it, so that a sample may lie a little beyond the limit.
        possible = self.space.contains(z) & (noise <= self.limit * (1 + 1e-6)).all(dim=-1)
        return torch.where(possible, log_density.sum(dim=-1), -torch.inf)

    def quantiles(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return for each coordinate the quantile of its distance from the median."""
        return (2 * self._below(z, anchors) - 1).abs()

    def residuals(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return normal scores, which undo what the bounds of a box do."""
        return torch.special.ndtri(self._below(z, anchors).clamp(1e-9, 1 - 1e-9))

    def _below(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the distribution function of each coordinate."""
        self._refuse_sphere()
        left, right = self._sides(anchors)
        step = z - anchors
        signed = step.sign() * half_cdf(step.abs() / self.scale, self.p)
        return ((left + signed) / (left + right).clamp_min(1e-12)).clamp(0, 1)

    def _refuse_sphere(self, what: str = "density") -> None:
        if self.space.spherical:
            raise DemixError(
                f"{self!r} projects its noise on the sphere, where its {what} is not known; "
                "use VonMisesFisher if you need one."
            )

    def mean_entropy(self) -> float:
        """Return the entropy: closed form on ``R^n``, one integral per side length on a box."""
        self._refuse_sphere("entropy")
        if self._box is None:
            return self.space.dim * self._entropy(math.inf, math.inf)
        sides = (self._box.high - self._box.low).tolist()
        mean = {side: self._truncated_entropy(side) for side in set(sides)}
        return math.fsum(mean[side] for side in sides)

    def _entropy(self, left: float, right: float) -> float:
        """Return the entropy of one coordinate of noise with so much room on either side."""
        shape = 1 / self.p
        reach = [(min(room, self.limit) / self.scale) ** self.p for room in (left, right)]
        mass = sum(special.gammainc(shape, r) for r in reach)
        energy = shape * sum(special.gammainc(1 + shape, r) for r in reach) / mass
        return float(math.log(self.scale * mass) + math.lgamma(1 + shape) + energy)

    def _truncated_entropy(self, side: float) -> float:
        """Average over an anchor on ``[0, side]`` of the entropy of its truncated noise."""

        def entropy(anchor: float) -> float:
            return self._entropy(anchor, side - anchor)

        middle = side / 2  # the integrand is symmetric, and bends near the edge and at the limit
        bends = sorted({0.0, min(5 * self.scale, middle / 2), min(self.limit, middle), middle})
        halves = [integrate.quad(entropy, low, high)[0] for low, high in pairwise(bends)]
        return float(math.fsum(halves) / middle)


class Normal(GeneralizedNormal):
    """Normal noise, ``p = 2``; ``sigma`` is its deviation before truncation or projection.

    Examples
    --------
    >>> from demix import Normal, Real
    >>> Normal(Real(3), sigma=0.5).similarity.rate
    2.0
    """

    def __init__(self, space: Space, sigma: float) -> None:
        self.sigma = check_positive(sigma, "sigma of a normal")
        super().__init__(space, 2.0, sigma * math.sqrt(2))


class Laplace(GeneralizedNormal):
    """Laplace noise, ``p = 1``; ``scale`` is its mean absolute deviation before truncation.

    With a ``limit`` it is the truncated Laplace of Reizinger et al. (2024), Fig. 5.

    Examples
    --------
    >>> from demix import Box, Laplace
    >>> Laplace(Box(2), scale=0.05).similarity.kind
    1.0
    """

    def __init__(self, space: Space, scale: float, *, limit: float = math.inf) -> None:
        super().__init__(space, 1.0, scale, limit=limit)


def half_cdf(t: Tensor, p: float) -> Tensor:
    """Return ``P(|x| <= t)``, the regularised incomplete gamma function of ``t^p`` at ``1/p``."""
    if p == 1:
        return -torch.expm1(-t)
    if p == 2:
        return torch.erf(t)
    return torch.special.gammainc(torch.full_like(t, 1 / p), t.pow(p))


def half_quantile(u: Tensor, p: float) -> Tensor:
    """Return ``t`` with ``half_cdf(t, p) = u`` for ``u`` in ``[0, 1)``."""
    if p == 1:
        return -torch.log1p(-u)
    if p == 2:
        return torch.erfinv(u)
    # t is a smooth function of the log survival, linear in both ends for every p, so a fine even
    # grid in it with linear interpolation is exact to about 1e-7, and to 1e-5 at p = 0.4.
    position = -torch.log1p(-u) * ((_POINTS - 1) / _DEEPEST)
    cell = position.floor().clamp_(0, _POINTS - 2)
    table, index = _quantile_table(p).to(u), cell.long()
    left = table[index]
    return left + (table[index + 1] - left) * (position - cell)


@lru_cache(maxsize=32)
def _quantile_table(p: float) -> Tensor:
    survival = np.exp(-np.linspace(0.0, _DEEPEST, _POINTS))  # t^p is Gamma(1/p) distributed
    return torch.from_numpy(special.gammainccinv(1 / p, survival) ** (1 / p))
