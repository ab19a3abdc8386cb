"""Latents of positive pairs in the units of their noise model, and simulated pairs like them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

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
from demix.spaces.box import Box
from demix.spaces.sphere import Sphere

_WALLS = (0.001, 0.999)


@dataclass(frozen=True, eq=False)
class Paired:
    """Latents of held-out positive pairs.

    Attributes
    ----------
    z, z_tilde : Tensor (M, n) of float64
        On the unit sphere, in a box that starts at 0, or in R^n.
    chains : ndarray (M,) of int
        Anchors of one chain follow each other in time; those of different chains are independent.
    model : NoiseModel
        What the trained model assumes of their noise, with its own scale.
    """

    z: Tensor
    z_tilde: Tensor
    chains: np.ndarray
    model: NoiseModel

    def fitted(self, *, shape: bool) -> NoiseModel:
        """Return the noise model of the largest likelihood."""
        return self.model.fitted(self.z_tilde, self.z, shape=shape)

    def under(self, model: NoiseModel) -> Paired:
        """Return the same pairs with another noise model."""
        return replace(self, model=model)

    def quantiles(self) -> np.ndarray:
        """Return the size of the noise as quantiles ``(M, k)`` of the model."""
        return np.asarray(self.model.quantiles(self.z_tilde, self.z))

    def residuals(self) -> np.ndarray:
        """Return the noise ``(M, n)``."""
        return np.asarray(self.model.residuals(self.z_tilde, self.z))

    def simulated(self, random: np.random.Generator) -> Paired:
        """Return as many pairs that obey the model, and are as dependent as these."""
        z = self.z  # where no marginal is assumed
        if self.model.space.bounded:
            start = uniform(self.model.space, len(self.z), random)
            z = _walked(start, self.chains, self.model, random)
        return replace(self, z=z, z_tilde=self.model.sample(z, generator=random))


def uniform(space: Space, size: int, random: np.random.Generator) -> Tensor:
    """Draw latents ``(size, n)`` of the theorems' marginal on a sphere or in a box."""
    if space.spherical:
        return space.project(torch.from_numpy(random.normal(size=(size, space.dim))))
    low, high = space.bounds(torch.empty(0, dtype=torch.float64))  # type: ignore[attr-defined]
    return low + (high - low) * torch.from_numpy(random.random((size, space.dim)))


def _walked(
    start: Tensor, chains: np.ndarray, model: NoiseModel, random: np.random.Generator
) -> Tensor:
    """Let every chain walk from its first point, all chains at once."""
    _, first, place, sizes = np.unique(
        chains, return_index=True, return_inverse=True, return_counts=True
    )
    if sizes.max() == 1:
        return start
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(chains), dtype=np.int64)
    rank[order] = np.arange(len(chains)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    z = start.clone()
    at = start[first]
    for step in range(1, int(sizes.max())):
        at = model.sample(at, generator=random)
        here = rank == step
        z[here] = at[place[here]]
    return z


def _upright(z: np.ndarray) -> np.ndarray:
    """Return the rotation ``(n, n)`` of latents ``(M, n)`` that makes coordinates independent.

    Normal noise leaves a rotation open, after which a box is no longer parallel to the axes.
    """
    if z.shape[1] == 1:
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
    chains: np.ndarray | None = None,
) -> Paired:
    """Bring latents of pairs ``(M, n)`` into the units of their noise model.

    ``space`` is a Sphere, Box or Real, ``p`` the assumed shape. Latents of a ``trained`` model have
    noise of the scale 1; otherwise nothing is assumed of it. By default all pairs are independent.
    """
    z, z_tilde = np.asarray(z, dtype=np.float64), np.asarray(z_tilde, dtype=np.float64)
    if z.ndim != 2 or z.shape != z_tilde.shape or z.shape[1] != space.dim:
        raise DemixError(
            f"Paired latents must be two arrays (M, {space.dim}), but got {z.shape} and "
            f"{z_tilde.shape}."
        )
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
        chord = math.sqrt(float(np.mean(((z - z_tilde) ** 2).sum(axis=1))) or 1e-6)
        # e^{r^2 z.z~} is e^{-(chord / scale)^2} with scale^2 = 2 / r^2.
        own = math.sqrt(2) / float(np.median(lengths[0]))
        model = GeneralizedVonMisesFisher(Sphere(space.dim), p, own if trained else chord)
    else:
        spread = float(np.abs(z - z_tilde).mean()) or 1e-6
        if space.bounded:
            if p == 2:
                turn = _upright(z)
                z, z_tilde = z @ turn, z_tilde @ turn
            # An encoder reaches the walls of its box only in the limit: those of the latents count.
            low, high = np.quantile(np.concatenate([z, z_tilde]), _WALLS, axis=0)
            sides = (high - low).clip(1e-9)
            z, z_tilde = (z - low).clip(0, sides), (z_tilde - low).clip(0, sides)
            space = Box(space.dim, high=sides.tolist())
        model = GeneralizedNormal(space, p, 1.0 if trained else spread)
    chains = np.arange(len(z)) if chains is None else np.asarray(chains)
    return Paired(torch.from_numpy(z), torch.from_numpy(z_tilde), chains, model)
