"""Latents of positive pairs in the units of their law, and data like them that obey it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from demix._support.errors import DemixError
from demix.diagnostics.laws import BoxLaw, Law, SphereLaw
from demix.spaces.base import Space
from demix.spaces.box import Box
from demix.spaces.real import Real
from demix.spaces.sphere import Sphere

_WALLS = (0.001, 0.999)


@dataclass(frozen=True, eq=False)
class Paired:
    """Latents of held-out positive pairs.

    Attributes
    ----------
    z, z_tilde : ndarray (M, n) of float64
        On the unit sphere, in a box that starts at 0, or in R^n.
    chains : ndarray (M,) of int
        Anchors of one chain follow each other in time; of different ones they are independent.
    law : Law
        What the model assumes of their noise, with the model's own scale.
    """

    z: np.ndarray
    z_tilde: np.ndarray
    chains: np.ndarray
    law: Law

    def simulated(self, law: Law, random: np.random.Generator) -> Paired:
        """Return as many pairs that obey ``law``, and are as dependent as these."""
        start = law.uniform(len(self.z), random)
        if start is None:  # no marginal is assumed: keep the one that is there
            return Paired(self.z, law.sample(self.z, random), self.chains, self.law)
        z = _walked(start, self.chains, law, random)
        return Paired(z, law.sample(z, random), self.chains, self.law)


def _walked(
    start: np.ndarray, chains: np.ndarray, law: Law, random: np.random.Generator
) -> np.ndarray:
    """Let every chain walk from its first point, all chains at once."""
    _, first, place, sizes = np.unique(
        chains, return_index=True, return_inverse=True, return_counts=True
    )
    if sizes.max() == 1:
        return start
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(chains), dtype=np.int64)
    rank[order] = np.arange(len(chains)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    z = start.copy()
    at = start[first]
    for step in range(1, int(sizes.max())):
        at = law.sample(at, random)
        here = rank == step
        z[here] = at[place[here]]
    return z


def _upright(z: np.ndarray) -> np.ndarray:
    """Return the rotation ``(n, n)`` of latents ``(M, n)`` that makes coordinates independent.

    Normal noise leaves a rotation open, after which a box no longer stands on its faces.
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
    """Bring latents of pairs ``(M, n)`` into the units of their law.

    Parameters
    ----------
    z, z_tilde : ndarray (M, n)
        Anchors and positives.
    space : Space
        Sphere, Box or Real, in which they live.
    trained : bool
        Whether the sizes of the latents are those of a trained model, in which noise has the scale
        1; otherwise nothing is assumed of it.
    p : float
        The assumed shape.
    chains : ndarray (M,), optional
        As in :class:`Paired`; by default all are independent.
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
    chains = np.arange(len(z)) if chains is None else np.asarray(chains)
    law: Law
    if isinstance(space, Sphere):
        lengths = [np.linalg.norm(side, axis=1, keepdims=True).clip(1e-30) for side in (z, z_tilde)]
        z, z_tilde = z / lengths[0], z_tilde / lengths[1]
        chord = math.sqrt(float(np.mean(((z - z_tilde) ** 2).sum(axis=1))) or 1e-6)
        # e^{r^2 z.z~} is e^{-(chord / scale)^2} with scale^2 = 2 / r^2.
        model = math.sqrt(2) / float(np.median(lengths[0]))
        law = SphereLaw(p, model if trained else chord, space.dim)
    elif isinstance(space, Box | Real):
        spread = float(np.abs(z - z_tilde).mean()) or 1e-6
        sides = np.full(space.dim, np.inf)
        if isinstance(space, Box):
            if p == 2:
                turn = _upright(z)
                z, z_tilde = z @ turn, z_tilde @ turn
            # An encoder reaches the walls of its box only in the limit: those of the latents count.
            low, high = np.quantile(np.concatenate([z, z_tilde]), _WALLS, axis=0)
            sides = (high - low).clip(1e-9)
            z, z_tilde = (z - low).clip(0, sides), (z_tilde - low).clip(0, sides)
        law = BoxLaw(p, 1.0 if trained else spread, sides)
    else:
        raise DemixError(f"A check-up of pairs knows spheres, boxes and R^n, but got {space!r}.")
    return Paired(z, z_tilde, chains, law)
