"""The cross-polytope: an example of a convex body added by the contract."""

import math

import torch
from torch import Tensor

from demix.spaces.base import Space, check_dim, check_radius, device_of


class L1Ball(Space):
    r"""The ball :math:`\{z \in R^n : |z|_1 \le r\}`.

    Examples
    --------
    >>> import torch
    >>> from demix import L1Ball
    >>> L1Ball(2).project(torch.tensor([2.0, 0.5]))
    tensor([1., 0.])
    """

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim = check_dim(dim)
        self.radius = check_radius(radius, "An L1 ball")

    @property
    def log_volume(self) -> float:
        r""":math:`|Z| = (2r)^n / n!`."""
        return self.dim * math.log(2 * self.radius) - math.lgamma(self.dim + 1)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Share the radius out by ``n + 1`` exponentials (uniform on a simplex), sign at random."""
        unit = torch.rand((size, self.dim + 1), generator=generator, device=device_of(generator))
        shares = -torch.log1p(-unit)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        sign = torch.rand((size, self.dim), generator=generator, device=unit.device) < 0.5
        return self.radius * torch.where(sign, -shares[:, :-1], shares[:, :-1])

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Compare the L1 norm with the radius."""
        return z.abs().sum(dim=-1) <= self.radius * (1 + atol)

    def project(self, z: Tensor) -> Tensor:
        """Soft-threshold by the amount that brings the norm down to the radius (by sorting)."""
        size = z.abs()
        ordered = size.sort(dim=-1, descending=True).values
        count = torch.arange(1, self.dim + 1, dtype=z.dtype, device=z.device)
        thresholds = (ordered.cumsum(dim=-1) - self.radius) / count
        # The largest threshold is the one at which exactly the remaining entries are positive.
        threshold = thresholds.max(dim=-1, keepdim=True).values.clamp_min(0)
        return z.sign() * (size - threshold).clamp_min(0)

    def squash(self, z: Tensor) -> Tensor:
        """Shrink along rays, ``z / (1 + |z|_1)``: one-to-one onto the interior."""
        return self.radius * z / (1 + z.abs().sum(dim=-1, keepdim=True))
