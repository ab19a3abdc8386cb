"""The contracts of marginal and conditional distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space

Generator = torch.Generator | np.random.Generator
"""A source of random numbers."""


@dataclass(frozen=True)
class Similarity:
    r"""The similarity that a conditional implies, Eqs. 2 and 5 of Zimmermann et al. (2021).

    ``log p(z~ | z) = rate * s(z, z~) + const`` where ``s`` is the dot product (``kind="dot"``) or
    :math:`-|z - z~|_p^p` (``kind=p``).

    Attributes
    ----------
    kind : "dot" or float
        What :func:`demix.contrast` takes as ``similarity``.
    rate : float
        ``kappa``, or ``scale ** -p``.
    exact : bool
        False where the density only resembles this form (noise projected on a sphere).
    """

    kind: Literal["dot"] | float
    rate: float
    exact: bool = True


class Marginal(ABC):
    """A distribution ``p(z)`` of latents on a space."""

    space: Space

    @abstractmethod
    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw ``(size, n)`` latents on the generator's device."""

    @abstractmethod
    def log_prob(self, z: Tensor) -> Tensor:
        """Return ``log p(z)`` for each row of ``z`` ``(N, n)``."""


class Conditional(ABC):
    """A distribution ``p(z~ | z)`` of positives around anchors on a space."""

    space: Space

    @property
    @abstractmethod
    def similarity(self) -> Similarity:
        """The similarity that this conditional implies."""

    @abstractmethod
    def sample(self, anchors: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw one positive ``z~`` for each anchor ``(N, n)``, on the anchors' device."""

    @abstractmethod
    def log_prob(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return ``log p(z | anchor)`` for each row of ``z`` ``(N, n)``."""

    @abstractmethod
    def mean_entropy(self) -> float:
        """Return the entropy of ``p(. | z)`` in nats, averaged over uniform ``z``."""

    def at(self, center: Tensor | None = None) -> Marginal:
        """Return the marginal that lies around one fixed point.

        Parameters
        ----------
        center : Tensor (n,), optional
            By default the paper's: the first pole of a sphere, elsewhere the origin.
        """
        return Around(self, center)


class Around(Marginal):
    """A conditional with its anchor held fixed, used as a marginal."""

    def __init__(self, conditional: Conditional, center: Tensor | None = None) -> None:
        self.space = conditional.space
        self.conditional = conditional
        if center is None:
            center = torch.zeros(self.space.dim)
            if self.space.spherical:
                center = self.space.project(center)
        if center.shape != (self.space.dim,) or not bool(self.space.contains(center)):
            raise DemixError(
                f"The centre of a marginal must be one point of {self.space!r}, "
                f"but got {center.tolist()!r}."
            )
        self.center = center

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw around the centre."""
        device = None if generator is None else generator.device
        return self.conditional.sample(self.center.to(device).expand(size, -1), generator=generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the conditional's density at the centre."""
        return self.conditional.log_prob(z, self.center.to(z).expand_as(z))

    def __repr__(self) -> str:
        return f"{self.conditional!r}.at({self.center.tolist()})"


def rand(shape: Sequence[int], like: Tensor, generator: Generator | None) -> Tensor:
    """Return uniform numbers in [0, 1), of the type and on the device of ``like``."""
    if isinstance(generator, np.random.Generator):
        return torch.from_numpy(generator.random(tuple(shape))).to(like)
    return torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)


def randn(shape: Sequence[int], like: Tensor, generator: Generator | None) -> Tensor:
    """Return normal numbers, of the type and on the device of ``like``."""
    if isinstance(generator, np.random.Generator):
        return torch.from_numpy(generator.normal(size=tuple(shape))).to(like)
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)


def check_positive(value: float, name: str) -> float:
    """Return ``value`` as a float if it is positive and finite."""
    if not 0 < value < float("inf"):
        raise DemixError(f"{name} must be positive and finite, but got {value!r}.")
    return float(value)
