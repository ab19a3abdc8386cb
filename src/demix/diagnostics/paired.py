"""Latents of positive pairs in the units of their noise model, and simulated pairs like them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import NoiseModel
from demix.distributions.generalized_normal import GeneralizedNormal
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.spaces.base import Space
from demix.spaces.kinds import Box, Sphere

_WALLS = (0.001, 0.999)
_LAGS = 10


@dataclass(frozen=True, eq=False)
class Paired:
    """Latents ``(M, n)`` of held-out pairs: on the unit sphere, in a box from 0, or in R^n."""

    z: Tensor
    z_tilde: Tensor
    blocks: np.ndarray  # (M,), pairs of different ones are independent
    model: NoiseModel  # what the trained model assumes of their noise, with its own scale
    walk: Tensor | None = None  # (W, n), for a series, at even distances over all of it
    # (k,), of the noise in units of the model's scale, for each of equally frequent lags.
    widths: np.ndarray = field(default_factory=lambda: np.ones(1))
    uniform: bool = True  # whether a uniform marginal is assumed
    isotropic: bool = True  # whether the noise is assumed to be alike in all directions

    def fitted(self, *, shape: bool) -> NoiseModel:
        """Return the noise model of the largest likelihood."""
        return self.model.fitted(self.z_tilde, self.z, shape=shape)

    def quantiles(self) -> np.ndarray:
        """Return the size of the noise as quantiles ``(M, k)`` of the model."""
        return np.asarray(self.model.quantiles(self.z_tilde, self.z))

    def residuals(self) -> np.ndarray:
        """Return the noise ``(M, n)``."""
        return np.asarray(self.model.residuals(self.z_tilde, self.z))

    def simulated(self, draws: int, random: np.random.Generator) -> list[Paired]:
        """Return as many pairs that obey the model and are as dependent as these, many times."""
        space, size = self.model.space, len(self.z)
        even = space.bounded and self.uniform
        walks: list[Tensor | None] = [None] * draws
        if even and self.walk is not None:
            # As long as this one, from a uniform start, with steps of its size.
            step = self.model.fitted(self.walk[1:], self.walk[:-1], shape=False)
            places = [uniform(space, draws, random)]
            for _ in range(len(self.walk) - 1):
                places.append(step.sample(places[-1], generator=random))
            walks = list(torch.stack(places, dim=1))
        found = []
        for walk in walks:
            z = self.z  # where no marginal is assumed
            if walk is not None:
                z = walk[torch.linspace(0, len(walk) - 1, size).long()]
            elif even:
                z = uniform(space, size, random)
            found.append(replace(self, z=z, z_tilde=self._positives(z, random), walk=walk))
        return found

    def _positives(self, z: Tensor, random: np.random.Generator) -> Tensor:
        """Draw a positive for each anchor, at one of the lags."""
        which, z_tilde = random.integers(len(self.widths), size=len(z)), torch.empty_like(z)
        for number, width in enumerate(self.widths):
            own = torch.from_numpy(which == number)
            model = self.model.with_noise(self.model.p, self.model.scale * float(width))
            z_tilde[own] = model.sample(z[own], generator=random)
        return z_tilde


def uniform(space: Space, size: int, random: np.random.Generator) -> Tensor:
    """Draw latents ``(size, n)`` of the theorems' marginal on a sphere or in a box."""
    if space.spherical:
        return space.project(torch.from_numpy(random.normal(size=(size, space.dim))))
    low, high = space.bounds(torch.empty(0, dtype=torch.float64))  # type: ignore[attr-defined]
    return low + (high - low) * torch.from_numpy(random.random((size, space.dim)))


def _upright(z: np.ndarray) -> np.ndarray:
    """Return the rotation ``(n, n)`` of latents ``(M, n)`` that makes coordinates independent."""
    if z.shape[1] == 1:  # else normal noise may have turned the box away from the axes
        return np.eye(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = FastICA(whiten="unit-variance", fun="cube", random_state=0).fit(z).components_
    left, _, right = np.linalg.svd(found)
    return np.asarray((left @ right).T)


def paired(
    z: np.ndarray,
    z_tilde: np.ndarray,
    space: Space,
    *,
    trained: bool = False,
    p: float = 2.0,
    blocks: np.ndarray | None = None,
    walk: np.ndarray | None = None,
    lags: tuple[int, int] = (1, 1),
) -> Paired:
    """Bring latents of pairs ``(M, n)`` into the units of their noise model.

    ``space`` is a Sphere, Box or Real, ``p`` the assumed shape. Latents of a ``trained`` model have
    noise of the scale 1; otherwise nothing is assumed of it. By default all pairs are independent.
    Those of a series have a ``walk``, and ``lags`` that are drawn uniformly.
    """
    if len(z) < 100:
        raise DemixError(f"A check-up takes at least 100 pairs, but got {len(z)}.")
    if not (np.isfinite(z).all() and np.isfinite(z_tilde).all()):
        raise DemixError("Paired latents must be finite, but some are NaN or infinite.")
    if not (space.spherical or space.separable or not space.bounded):
        raise DemixError(f"A check-up of pairs knows spheres, boxes and R^n, but got {space!r}.")
    model: NoiseModel
    if space.spherical:
        lengths = [np.linalg.norm(side, axis=1, keepdims=True).clip(1e-30) for side in (z, z_tilde)]
        z, z_tilde = z / lengths[0], z_tilde / lengths[1]
        if walk is not None:
            walk = walk / np.linalg.norm(walk, axis=1, keepdims=True).clip(1e-30)
        chord = math.sqrt(float(np.mean(((z - z_tilde) ** 2).sum(axis=1))) or 1e-6)
        own = math.sqrt(2) / float(np.median(lengths[0]))  # e^{r^2 z.z~} is e^{-(chord / own)^2}
        model = GeneralizedVonMisesFisher(Sphere(space.dim), p, own if trained else chord)
    else:
        spread = float(np.abs(z - z_tilde).mean()) or 1e-6
        if space.bounded:
            if p == 2:
                turn = _upright(z)
                z, z_tilde = z @ turn, z_tilde @ turn
                walk = None if walk is None else walk @ turn
            # An encoder reaches the walls of its box only in the limit: those of the latents count.
            low, high = np.quantile(np.concatenate([z, z_tilde]), _WALLS, axis=0)
            sides = (high - low).clip(1e-9)
            z, z_tilde = (z - low).clip(0, sides), (z_tilde - low).clip(0, sides)
            walk = None if walk is None else (walk - low).clip(0, sides)
            space = Box(space.dim, high=sides.tolist())
        model = GeneralizedNormal(space, p, 1.0 if trained else spread)
    blocks = np.arange(len(z)) if blocks is None else np.asarray(blocks)
    # Noise adds up over the rows between; very many lags are as good as ten of them.
    every = np.unique(np.linspace(*lags, _LAGS).round())
    sides = torch.from_numpy(z), torch.from_numpy(z_tilde)
    path = None if walk is None else torch.from_numpy(walk)
    return Paired(*sides, blocks, model, path, np.sqrt(every / every.mean()))
