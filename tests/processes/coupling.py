"""A mixing of another kind, for the laws that every mixing keeps."""

from __future__ import annotations

import torch
from torch import Tensor

from demix import Mixing


class CouplingMixing(Mixing):
    r"""Random affine coupling layers (real NVP) with a random rotation before each.

    One half of the coordinates, ``a``, stays; the other becomes
    :math:`b \, e^{s(a)} + t(a)` with random ``s`` (bounded) and ``t`` of one layer of ``hidden``
    units (Dinh et al. 2017, Density estimation using Real NVP).
    """

    def __init__(self, dim: int, *, seed: int, layers: int = 4, hidden: int = 32) -> None:
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
