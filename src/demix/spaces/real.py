"""Unbounded latents."""

import math

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space, check_dim


class Real(Space):
    """All of ``R^n``: no theorem of the paper covers it, several of its experiments use it.

    Examples
    --------
    >>> from demix import Real
    >>> Real(2).bounded
    False
    """

    log_volume = math.inf

    def __init__(self, dim: int) -> None:
        self.dim = check_dim(dim)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Refuse: no uniform distribution exists on an unbounded space."""
        raise DemixError(
            "R^n has no uniform distribution; choose a Normal or Laplace marginal, or a Box."
        )

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Every finite point is in the space."""
        return z.isfinite().all(dim=-1)

    def project(self, z: Tensor) -> Tensor:
        """Change nothing."""
        return z

    def squash(self, z: Tensor) -> Tensor:
        """Change nothing."""
        return z
