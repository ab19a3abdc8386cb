"""Input whitening, fitted on data and stored with the model."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Whitening(nn.Module):
    """Centre the input and give it unit covariance; part of the encoder, not trained.

    Parameters
    ----------
    dim : int
        The input dimension.

    Examples
    --------
    >>> import torch
    >>> from demix.encoders import Whitening
    >>> x = torch.randn(1000, 3) @ torch.randn(3, 3)
    >>> white = Whitening(3).fit(x)(x)
    >>> torch.allclose(white.T @ white / 1000, torch.eye(3), atol=1e-3)
    True
    """

    mean: Tensor
    matrix: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        # Not torch.eye, which on torch's meta device waits two seconds for a compiler's modules.
        self.register_buffer("matrix", torch.zeros(dim, dim).fill_diagonal_(1))

    @torch.no_grad()
    def fit(self, x: Tensor) -> Whitening:
        """Take mean and covariance from ``x`` ``(N, dim)``; directions without variance go to 0."""
        wide = x.double()
        mean = wide.mean(dim=0)
        centred = wide - mean
        variance, axes = torch.linalg.eigh(centred.T @ centred / len(wide))
        # Of constant data the rounding of the mean is left, which is no variance either.
        rounding = (1e-13 * wide.abs().max()) ** 2
        keep = variance > 1e-10 * variance.max() + rounding
        factor = torch.where(keep, variance.clamp_min(1e-300).rsqrt(), 0.0)
        self.mean.copy_(mean)
        # Rotated back after scaling (ZCA), so that whitened inputs stay near the original axes.
        self.matrix.copy_((axes * factor) @ axes.T)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Whiten ``(N, dim)``."""
        return (x - self.mean) @ self.matrix
