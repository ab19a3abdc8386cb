"""Whitening of the input, fitted on data and stored with the model; of images, each channel."""

import math

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError


class Whitening(nn.Module):
    """Centre the input and give it unit covariance; keep ``components`` of the largest variance."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, dim: int, components: int | None = None) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        # Not torch.eye, which on torch's meta device waits two seconds for a compiler's modules.
        kept = dim if components is None else components
        self.register_buffer("matrix", torch.zeros(dim, kept).fill_diagonal_(1))

    @property
    def samples(self) -> int:
        """How many samples a fit should see."""
        return max(8192, 4 * self.matrix.shape[1])

    @property
    def fit_bytes(self) -> int:
        """Roughly how many bytes a fit takes, for the samples and three covariances."""
        dim = len(self.mean)
        return 20 * self.samples * dim + 24 * dim**2

    def note(self, low: float, high: float) -> str:
        """Return a sentence on what is done to columns of these standard deviations."""
        dim, kept = self.matrix.shape
        most = f"; the {kept} directions of the largest variance were kept" if kept < dim else ""
        return (
            f"Columns, with standard deviations from {low:.3g} to {high:.3g}, were centred, scaled "
            f"and whitened{most}."
        )

    @torch.no_grad()
    def fit(self, x: Tensor, *, scales: Tensor | None = None) -> "Whitening":
        """Fit mean and covariance to ``x`` ``(N, dim)``; directions without variance become 0.

        Columns are divided by their ``scales`` ``(dim,)`` first, so that all units count alike. The
        mean keeps the precision of ``x``: in float64, columns may lie far from zero.
        """
        if x.dtype == torch.float64:
            self.mean = self.mean.double()
        if scales is None:
            return self._fit(x)
        size = torch.where(scales > 0, scales, 1.0).double().to(x.device)
        self._fit(x / size)
        self.mean.copy_(self.mean.double() * size)
        self.matrix.copy_(self.matrix.double() / size[:, None] * (scales > 0)[:, None].to(x.device))
        return self

    def _fit(self, x: Tensor) -> "Whitening":
        dim, kept = self.matrix.shape
        if kept < dim:
            return self._fit_largest(x, kept)
        wide = x.double()
        mean = wide.mean(dim=0)
        centred = wide - mean
        if not torch.isfinite(centred).all():
            raise DemixError(
                "Expected columns that can be centred in float32, but some numbers are too large "
                "for it; divide the columns by their size."
            )
        variance, axes = torch.linalg.eigh(centred.T @ centred / len(wide))
        # The rounding of the mean of constant data is no variance either.
        rounding = (1e-13 * wide.abs().max()) ** 2
        keep = variance > 1e-10 * variance.max() + rounding
        factor = torch.where(keep, variance.clamp_min(1e-300).rsqrt(), 0.0)
        self.mean.copy_(mean)
        # Rotated back after scaling (ZCA), so that whitened inputs stay near the original axes.
        self.matrix.copy_((axes * factor) @ axes.T)
        return self

    def _fit_largest(self, x: Tensor, kept: int) -> "Whitening":
        """Find the directions of the largest variance by a randomised decomposition."""
        mean = x.mean(dim=0)
        centred = (x - mean).float()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found = min(kept, *x.shape)
            _, size, axes = torch.svd_lowrank(centred, q=min(found + 10, *x.shape), niter=4)
        deviation = size[:found] / math.sqrt(len(x))
        keep = deviation > 1e-5 * deviation.max()
        factor = torch.where(keep, 1 / deviation.clamp_min(1e-30), 0.0)
        self.mean.copy_(mean)
        self.matrix.zero_()
        self.matrix[:, :found].copy_(axes[:, :found] * factor)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Whiten ``(N, dim)``, centred in the precision of the mean, in that of the model."""
        return (x - self.mean).to(self.matrix.dtype) @ self.matrix


class ChannelScaling(nn.Module):
    """Centre each channel of images ``(C, H, W)`` and give it unit variance."""

    samples = 1024  # that a fit should see
    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", torch.zeros(shape[0], 1, 1))
        self.register_buffer("deviation", torch.ones(shape[0], 1, 1))

    @property
    def fit_bytes(self) -> int:
        """Roughly how many bytes a fit takes, for the samples."""
        return 20 * self.samples * math.prod(self.shape)

    def note(self, low: float, high: float) -> str:
        """Return a sentence on what is done to channels of these standard deviations."""
        return (
            f"Channels, with standard deviations from {low:.3g} to {high:.3g}, were centred and "
            "scaled."
        )

    @torch.no_grad()
    def fit(self, x: Tensor, *, scales: Tensor | None = None) -> "ChannelScaling":
        """Fit mean and deviation of each channel to ``x`` ``(N, ...)``; constant ones become 0."""
        deviation, mean = torch.std_mean(
            x.reshape(-1, *self.shape).double(), dim=(0, 2, 3), correction=0
        )
        self.mean.copy_(mean[:, None, None])
        least = 1e-7 * mean.abs() + 1e-30
        infinite = torch.full_like(deviation, torch.inf)
        self.deviation.copy_(torch.where(deviation > least, deviation, infinite)[:, None, None])
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, ...)`` to scaled images ``(N, C, H, W)``, channels last in memory."""
        images = (x.reshape(-1, *self.shape).to(self.mean.dtype) - self.mean) / self.deviation
        return images.contiguous(memory_format=torch.channels_last)
