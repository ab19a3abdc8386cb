"""Further invertible mixings."""

from __future__ import annotations

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.processes.mixing import Mixing


class SpiralMixing(Mixing):
    r"""Rotate each pair of coordinates by an angle that grows with its radius.

    :math:`(a, b) \mapsto R(\omega \sqrt{a^2 + b^2}) (a, b)`: smooth, volume preserving, and far
    from linear. With an odd dimension the last coordinate stays as it is.

    Parameters
    ----------
    dim : int
        The dimension ``n >= 2``.
    turns : float
        Full turns per unit of radius.

    Examples
    --------
    >>> import torch
    >>> from demix.processes.more_mixings import SpiralMixing
    >>> g = SpiralMixing(3)
    >>> z = torch.rand(5, 3, dtype=torch.float64)
    >>> torch.allclose(g.inverse(g(z)), z)
    True
    """

    def __init__(self, dim: int, *, turns: float = 0.5) -> None:
        if dim < 2:
            raise DemixError(f"A spiral needs at least 2 dimensions, but got {dim}.")
        self.dim_in = self.dim_out = dim
        self.turns = turns

    def __call__(self, z: Tensor) -> Tensor:
        """Turn outward points further."""
        return self._turn(z, self.turns)

    def inverse(self, x: Tensor) -> Tensor:
        """Turn back; radii have not changed."""
        return self._turn(x, -self.turns)

    def _turn(self, z: Tensor, turns: float) -> Tensor:
        paired = 2 * (self.dim_in // 2)
        a, b = z[..., 0:paired:2], z[..., 1:paired:2]
        angle = 2 * torch.pi * turns * torch.hypot(a, b)
        turned = torch.stack(
            [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1
        )
        return torch.cat([turned.flatten(-2), z[..., paired:]], dim=-1)


class CouplingMixing(Mixing):
    r"""Random affine coupling layers (real NVP) with a random rotation before each.

    One half of the coordinates, ``a``, passes; the other becomes
    :math:`b \, e^{s(a)} + t(a)` with random one-layer ``s`` (bounded) and ``t``.

    Parameters
    ----------
    dim : int
        The dimension ``n >= 2``.
    seed : int
        Seed of the weights.
    layers : int
        How many coupling layers.
    hidden : int
        Units of each ``s`` and ``t``.

    References
    ----------
    Dinh et al. (2017), Density estimation using Real NVP.

    Examples
    --------
    >>> import torch
    >>> from demix.processes.more_mixings import CouplingMixing
    >>> g = CouplingMixing(4, seed=0)
    >>> z = torch.rand(5, 4, dtype=torch.float64)
    >>> torch.allclose(g.inverse(g(z)), z)
    True
    """

    def __init__(self, dim: int, *, seed: int, layers: int = 4, hidden: int = 32) -> None:
        if dim < 2:
            raise DemixError(f"A coupling needs at least 2 dimensions, but got {dim}.")
        self.dim_in = self.dim_out = dim
        self.passed = dim // 2
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            draw = torch.randn(shape, generator=generator, dtype=torch.float64)
            return draw / shape[0] ** 0.5

        self.rotations = [torch.linalg.qr(normal(dim, dim)).Q for _ in range(layers)]
        self.first = [2 * normal(self.passed, hidden) for _ in range(layers)]
        self.second = [normal(hidden, 2 * (dim - self.passed)) for _ in range(layers)]

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the layers."""
        for layer, rotation in enumerate(self.rotations):
            a, b = self._halves(z @ rotation.to(z))
            log_scale, shift = self._couple(a, layer)
            z = torch.cat([a, b * log_scale.exp() + shift], dim=-1)
        return z

    def inverse(self, x: Tensor) -> Tensor:
        """Undo the layers, last first."""
        for layer, rotation in reversed(list(enumerate(self.rotations))):
            a, b = self._halves(x)
            log_scale, shift = self._couple(a, layer)
            x = torch.cat([a, (b - shift) * (-log_scale).exp()], dim=-1) @ rotation.to(x).T
        return x

    def _halves(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z[..., : self.passed], z[..., self.passed :]

    def _couple(self, a: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        raw = torch.tanh(a @ self.first[layer].to(a)) @ self.second[layer].to(a)
        log_scale, shift = raw.chunk(2, dim=-1)
        return torch.tanh(log_scale), 2 * shift
