"""A whole generating process: latents, positives and observations."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Conditional, Marginal
from demix.processes.mixing import Mixing
from demix.spaces.base import Space


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
