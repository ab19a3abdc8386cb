"""Noise whose shape and scale are fitted to pairs, and which pairs are compared with."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import optimize
from torch import Tensor

from demix.distributions.base import Conditional, Generator

SHAPES = (0.4, 12.0)
"""The shapes that a fit tells apart; beyond them noise is a spike or a block."""
# Pairs that a fit uses, and the smallest scale, which latents that do not differ would get.
_MOST, _LEAST = 2000, 1e-12


class NoiseModel(Conditional):
    r"""Noise of density :math:`\propto \exp(-(|\tilde z - z| / \lambda)^p)` on a space.

    Attributes
    ----------
    p, scale : float
        The shape and the scale :math:`\lambda`.
    """

    p: float
    scale: float

    @abstractmethod
    def sample(self, anchors: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Draw one positive for each anchor ``(N, n)``, from a generator of torch or NumPy."""

    @abstractmethod
    def with_noise(self, p: float, scale: float) -> NoiseModel:
        """Return the noise of another shape and scale on the same space."""

    @abstractmethod
    def quantiles(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return how large the noise is, as quantiles ``(N, k)``: uniform if the model holds."""

    @abstractmethod
    def residuals(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the noise ``(N, n)``, without mean or direction if the model holds."""

    def fitted(self, z: Tensor, anchors: Tensor, *, shape: bool) -> NoiseModel:
        """Return the model of the largest likelihood.

        Parameters
        ----------
        z, anchors : Tensor (N, n)
            Positives and their anchors; of more than 2000, some that are evenly spread.
        shape : bool
            Whether to fit the shape, too, and not the scale alone.
        """
        step = max(1, len(z) // _MOST)
        z, anchors = z[::step], anchors[::step]
        terms = self.quantiles(z[:1], anchors[:1]).shape[1]

        def at(logs: np.ndarray) -> NoiseModel:
            scale = max(math.exp(logs[0]), _LEAST)
            return self.with_noise(math.exp(logs[1]) if shape else self.p, scale)

        def loss(logs: np.ndarray) -> float:
            if shape and not SHAPES[0] <= math.exp(logs[1]) <= SHAPES[1]:
                return math.inf
            return -float(at(logs).log_prob(z, anchors).mean()) / terms

        start = [math.log(self.scale)] + ([math.log(self.p)] if shape else [])
        steps = np.array([start, *(np.array(start) + 0.5 * np.eye(len(start)))])
        options: dict[str, Any] = {"xatol": 2e-3, "fatol": 1e-6, "initial_simplex": steps}
        return at(optimize.minimize(loss, start, method="Nelder-Mead", options=options).x)
