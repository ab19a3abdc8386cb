"""The uniform marginal of the theorems."""

from __future__ import annotations

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Marginal
from demix.spaces.base import Space


class Uniform(Marginal):
    r"""The uniform distribution :math:`p(z) = |Z|^{-1}` (Eqs. 2, 5, 8).

    Parameters
    ----------
    space : Space
        A bounded space.

    Examples
    --------
    >>> from demix import Sphere, Uniform
    >>> Uniform(Sphere(3)).sample(5).shape
    torch.Size([5, 3])
    """

    def __init__(self, space: Space) -> None:
        if not space.bounded:
            raise DemixError(f"A uniform marginal needs a bounded space, but got {space!r}.")
        self.space = space

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw uniform latents."""
        return self.space.uniform(size, generator=generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return ``-log |Z|`` inside the space, ``-inf`` outside."""
        inside = self.space.contains(z)
        constant = torch.full(z.shape[:-1], -self.space.log_volume, dtype=z.dtype, device=z.device)
        return torch.where(inside, constant, -torch.inf)

    def __repr__(self) -> str:
        return f"Uniform({self.space!r})"
