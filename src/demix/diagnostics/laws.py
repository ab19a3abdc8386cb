"""How positives differ under the theorems: noise whose shape and scale are fitted to pairs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import optimize, special

# Shapes that are told apart; beyond them noise is a spike or a block.
SHAPES = (0.4, 12.0)
_GRID = 1024
# Pairs that a fit looks at.
_MOST = 2000
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Law(ABC):
    r"""Noise of density :math:`\propto \exp(-(|\tilde z - z| / \lambda)^p)` on a space.

    Attributes
    ----------
    p, scale : float
        The shape and the scale :math:`\lambda`, in units of the latents.
    """

    p: float
    scale: float

    @abstractmethod
    def sizes(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return how large the noise is, in quantiles ``(M, k)``: uniform if the law holds."""

    @abstractmethod
    def noise(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return the noise ``(M, n)``: without mean or direction if the law holds."""

    @abstractmethod
    def sample(self, z: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw a positive for each anchor ``(M, n)``."""

    @abstractmethod
    def uniform(self, size: int, random: np.random.Generator) -> np.ndarray | None:
        """Draw latents ``(size, n)`` of the theorem's marginal; None if it asks for none."""

    @abstractmethod
    def _loss(self, z: np.ndarray, z_tilde: np.ndarray) -> float:
        """Return the mean negative log-likelihood, up to a constant."""

    def fitted(self, z: np.ndarray, z_tilde: np.ndarray, *, shape: bool) -> Self:
        """Return the law of the largest likelihood: its scale, and with ``shape`` its shape too."""
        step = max(1, len(z) // _MOST)
        z, z_tilde = z[::step], z_tilde[::step]

        def loss(logs: np.ndarray) -> float:
            p = math.exp(logs[1]) if shape else self.p
            if not SHAPES[0] <= p <= SHAPES[1]:
                return math.inf
            return replace(self, p=p, scale=math.exp(logs[0]))._loss(z, z_tilde)

        start = [math.log(self.scale)] + ([math.log(self.p)] if shape else [])
        steps = np.array([start, *(np.array(start) + 0.5 * np.eye(len(start)))])
        options: dict[str, Any] = {"xatol": 2e-3, "fatol": 1e-6, "initial_simplex": steps}
        found = optimize.minimize(loss, start, method="Nelder-Mead", options=options).x
        return replace(self, scale=math.exp(found[0]), p=math.exp(found[1]) if shape else self.p)


@dataclass(frozen=True, eq=False)
class SphereLaw(Law):
    r"""On the unit sphere, by the chord; vMF is ``p = 2`` with :math:`\kappa = 2 / \lambda^2`.

    Attributes
    ----------
    dim : int
        The ambient dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.diagnostics.laws import SphereLaw
    >>> random = np.random.default_rng(0)
    >>> law = SphereLaw(p=2.0, scale=0.3, dim=4)
    >>> z = law.uniform(2000, random)
    >>> found = law.fitted(z, law.sample(z, random), shape=True)
    >>> 1.7 < found.p < 2.3, 0.27 < found.scale < 0.33
    (True, True)
    """

    dim: int

    @property
    def kappa(self) -> float:
        """The concentration of the vMF distribution of this scale."""
        return 2 / self.scale**2

    def sizes(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return the quantile of the angle."""
        angles, below = self._angles()
        return np.interp(self._angle(z, z_tilde), angles, below)[:, None]

    def noise(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return the part of the positive that is tangent at its anchor."""
        return z_tilde - (z * z_tilde).sum(axis=1, keepdims=True) * z

    def sample(self, z: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw the angle from its law, the direction uniformly."""
        angles, below = self._angles()
        angle = np.interp(random.random(len(z)), below, angles)[:, None]
        tangent = self.noise(z, random.normal(size=z.shape))
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        return np.asarray(np.cos(angle) * z + np.sin(angle) * tangent)

    def uniform(self, size: int, random: np.random.Generator) -> np.ndarray:
        """Draw normals and normalise them."""
        drawn = random.normal(size=(size, self.dim))
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))

    def _angle(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        # From the chord: the cosine of a small angle has no digits left.
        return 2 * np.arcsin(np.clip(np.linalg.norm(z - z_tilde, axis=1) / 2, 0, 1))

    def _density(self) -> tuple[np.ndarray, np.ndarray]:
        """Return angles, finer where they are small, and the log-density with respect to area."""
        angles = np.pi * np.linspace(0, 1, _GRID) ** 2
        return angles, -((2 * np.sin(angles / 2) / self.scale) ** self.p)

    def _angles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return angles and the probability of smaller ones."""
        angles, log_density = self._density()
        density = np.exp(log_density) * np.sin(angles) ** (self.dim - 2)
        steps = np.diff(angles) * (density[1:] + density[:-1]) / 2
        below = np.concatenate([[0], np.cumsum(steps)])
        return angles, below / below[-1]

    def _loss(self, z: np.ndarray, z_tilde: np.ndarray) -> float:
        angles, log_density = self._density()
        weights = np.exp(log_density) * np.sin(angles) ** (self.dim - 2)
        chords = np.linalg.norm(z - z_tilde, axis=1)
        area = max(float(np.trapezoid(weights, angles)), 1e-300)
        return float(np.mean((chords / self.scale) ** self.p) + math.log(area))


@dataclass(frozen=True, eq=False)
class BoxLaw(Law):
    r"""In a box of which noise does not leave, or with infinite sides in :math:`R^n`.

    Attributes
    ----------
    sides : ndarray (n,)
        Lengths of the box, which starts at 0; ``inf`` for :math:`R^n`.
    """

    sides: np.ndarray

    def sizes(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return for each coordinate the quantile of its distance from the median."""
        return np.abs(2 * self._below(z, z_tilde) - 1)

    def noise(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        """Return normal scores, which undo what the walls do."""
        return np.asarray(special.ndtri(np.clip(self._below(z, z_tilde), 1e-9, 1 - 1e-9)))

    def sample(self, z: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Invert the distribution function."""
        left, right = self._reach(z)
        signed = random.random(z.shape) * (left + right) - left
        size = special.gammaincinv(1 / self.p, np.abs(signed).clip(0, 1 - 1e-12)) ** (1 / self.p)
        return np.asarray(np.clip(z + self.scale * np.sign(signed) * size, *self._walls))

    def uniform(self, size: int, random: np.random.Generator) -> np.ndarray | None:
        """Draw each coordinate between its walls."""
        if not np.isfinite(self.sides).all():
            return None
        return np.asarray(self.sides * random.random((size, len(self.sides))))

    @property
    def _walls(self) -> tuple[np.ndarray, np.ndarray]:
        return np.where(np.isfinite(self.sides), 0.0, -np.inf), self.sides

    def _half(self, room: np.ndarray) -> np.ndarray:
        return np.asarray(special.gammainc(1 / self.p, (room.clip(0) / self.scale) ** self.p))

    def _reach(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability that free noise to either side stays within the walls."""
        low, high = self._walls
        return self._half(z - low), self._half(high - z)

    def _below(self, z: np.ndarray, z_tilde: np.ndarray) -> np.ndarray:
        left, right = self._reach(z)
        step = z_tilde - z
        signed = np.sign(step) * self._half(np.abs(step))
        return np.asarray(((left + signed) / (left + right).clip(_LEAST)).clip(0, 1))

    def _loss(self, z: np.ndarray, z_tilde: np.ndarray) -> float:
        within = math.log(2)
        if np.isfinite(self.sides).any():
            left, right = self._reach(z)
            within = float(np.log((left + right).clip(_LEAST)).mean())
        scale = max(self.scale, _LEAST)  # latents that have collapsed do not differ at all
        constant = math.log(scale) + math.lgamma(1 + 1 / self.p)
        return float(np.mean((np.abs(z_tilde - z) / scale) ** self.p) + within + constant)
