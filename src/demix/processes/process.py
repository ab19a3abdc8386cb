"""A whole generating process: latents, positives, and the mixing to observations."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from demix._support.errors import DemixError
from demix.distributions.base import Conditional, Marginal
from demix.spaces.base import Space

_SLOPE = 0.2  # of the LeakyReLU for negative inputs, as in the paper


class Mixing(ABC):
    """An injective ``g: Z -> X`` from ``dim_in`` latents to ``dim_out`` observed numbers."""

    dim_in: int
    dim_out: int

    @abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """Map latents ``(N, dim_in)`` to observations ``(N, dim_out)``."""

    @abstractmethod
    def inverse(self, x: Tensor) -> Tensor:
        """Map observations to their latents."""

    def check_space(self, space: Space) -> None:
        """Raise a DemixError if the latents of ``space`` are not those of this mixing."""
        if self.dim_in != space.dim:
            raise DemixError(
                f"The mixing takes {self.dim_in} latents, but the space has {space.dim} dimensions."
            )


class LeakyMixing(Mixing):
    r"""The paper's generator: linear maps with LeakyReLU(0.2) between them (App. A.3).

    Each matrix has entries from U(-1, 1) and columns of unit norm; of ``draws`` such matrices the
    ``layers`` with the smallest condition numbers are kept. (The authors' scripts redraw each layer
    until it is as good as the best of 25 000, which may never end.)

    Examples
    --------
    >>> import torch
    >>> from demix import LeakyMixing
    >>> g = LeakyMixing(4, seed=0, draws=100)
    >>> z = torch.rand(5, 4, dtype=torch.float64)
    >>> torch.allclose(g.inverse(g(z)), z)
    True
    """

    def __init__(self, dim: int, *, seed: int, layers: int = 3, draws: int = 25_000) -> None:
        for name, size in (("layers", layers), ("dim", dim)):
            if size < 1:
                raise DemixError(f"{name} of a leaky mixing must be at least 1, but got {size}.")
        self.dim_in = self.dim_out = dim
        self.matrices = [torch.tensor(w) for w in _best_matrices(dim, seed, layers, draws)]

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the linear maps and the units between them."""
        for weight in self.matrices[:-1]:
            z = functional.leaky_relu(functional.linear(z, weight.to(z)), _SLOPE)
        return functional.linear(z, self.matrices[-1].to(z))

    def inverse(self, x: Tensor) -> Tensor:
        """Solve each linear map and undo each unit, last first."""
        for weight in reversed(self.matrices[1:]):
            x = torch.linalg.solve(weight.T.to(x), x, left=False)
            x = torch.where(x < 0, x / _SLOPE, x)
        return torch.linalg.solve(self.matrices[0].T.to(x), x, left=False)


@lru_cache(maxsize=64)
def _best_matrices(dim: int, seed: int, layers: int, draws: int) -> tuple[np.ndarray, ...]:
    if draws < layers:
        raise DemixError(f"{layers} layers need at least {layers} draws, but got {draws}.")
    random = np.random.default_rng(seed)
    matrices = random.uniform(-1, 1, size=(draws, dim, dim))
    matrices /= np.linalg.norm(matrices, axis=1, keepdims=True)
    best = np.argsort(np.linalg.cond(matrices), kind="stable")[:layers]
    # Shuffled, so that the first is not always the best; copied, so that the draws are freed.
    return tuple(matrices[i].copy() for i in random.permutation(best))


class Pairs(NamedTuple):
    """Positive pairs: latents ``z``, ``z_tilde`` ``(N, n)``, observations ``x``, ``x_tilde``."""

    z: Tensor
    z_tilde: Tensor
    x: Tensor
    x_tilde: Tensor


@dataclass(frozen=True)
class Process:
    """The generating process of Eqs. 2 and 5: ``z ~ p(z)``, ``z~ ~ p(z~ | z)``, ``x = g(z)``.

    Marginal, of the anchors, and conditional, of the positives, are distributions on one space.

    Examples
    --------
    >>> from demix import LeakyMixing, Process, Sphere, Uniform, VonMisesFisher
    >>> space, mixing = Sphere(4), LeakyMixing(4, seed=0, draws=100)
    >>> Process(Uniform(space), VonMisesFisher(space, kappa=10.0), mixing).sample(8).x.shape
    torch.Size([8, 4])
    """

    marginal: Marginal
    conditional: Conditional
    mixing: Mixing

    def __post_init__(self) -> None:
        if self.marginal.space != self.conditional.space:
            raise DemixError(
                "Marginal and conditional must live on one space, but got "
                f"{self.marginal.space!r} and {self.conditional.space!r}."
            )
        self.mixing.check_space(self.space)

    @property
    def space(self) -> Space:
        """The space of the latents."""
        return self.marginal.space

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Pairs:
        """Draw ``size`` positive pairs on the generator's device."""
        z = self.marginal.sample(size, generator=generator)
        z_tilde = self.conditional.sample(z, generator=generator)
        return Pairs(z, z_tilde, self.mixing(z), self.mixing(z_tilde))
