"""SlowVAE: an autoencoder whose latents change sparsely, the baseline of Table 3."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.sharding import shardings
from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective, PairBatch


class SlowVAE(nn.Module, Objective[PairBatch]):
    r"""The loss of SlowVAE, with its decoder: frames of a pair differ by Laplace steps.

    .. math:: \frac{1}{2} \sum_{s} \left[ -\log p(x_s | z_s) + \beta\, KL(q_s \| N(0, 1))
              + \gamma\, KL(q_s \| \mathrm{Lap}(\mu_{s'}, \lambda)) \right]

    over the two frames, each of which is the past of the other; :math:`q = N(\mu, \sigma^2)` is
    what the encoder says, :math:`\beta = 1`, :math:`\gamma = 10` and the rate
    :math:`\lambda = 6` as published. Pixels are Bernoulli. The encoder has twice as many outputs
    as there are latents, in ``Real(2 * dim)``: means, then logarithms of variances;
    :meth:`latents` takes the means.

    Parameters
    ----------
    dim : int
        Number of latents.
    shape : (C, H, W)
        Of the images.

    References
    ----------
    Klindt et al. (2021), Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse
    Coding.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, Real
    >>> from demix.papers.zimmermann2021.slow_vae import SlowVAE
    >>> model = SlowVAE(10, (1, 64, 64))
    >>> encoder = Encoder((1, 64, 64), Real(20), body="kitti")
    >>> model.latents(encoder(torch.rand(3, 1, 64, 64))).shape
    torch.Size([3, 10])
    """

    beta, gamma, rate = 1.0, 10.0, 6.0

    def __init__(self, dim: int, shape: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.decoder = image_decoder(dim, shape)
        self.draws = torch.Generator()

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights of the decoder, and seed the draws of latents."""
        for layer in self.decoder:
            if isinstance(layer, nn.Linear):
                inputs = layer.in_features
            elif isinstance(layer, nn.ConvTranspose2d):
                inputs = 4 * layer.in_channels  # of 4x4 weights at every second pixel, four meet
            else:
                continue
            layer.weight.normal_(0, math.sqrt(2 / inputs), generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()
        super().initialise(generator)

    def latents(self, outputs: Tensor) -> Tensor:
        """Return the means ``(N, dim)`` among the outputs ``(N, 2 dim)`` of the encoder."""
        return outputs[:, : self.dim]

    def forward(self, encoder: Encoder, batch: PairBatch) -> Tensor:
        """Return the loss ``()`` in nats, per frame."""
        x = torch.cat([batch.x, batch.x_tilde])
        outputs = encoder(x)
        if outputs.shape[1] != 2 * self.dim:
            raise DemixError(
                f"SlowVAE of {self.dim} latents needs an encoder with {2 * self.dim} outputs, "
                f"means and log-variances, but it has {outputs.shape[1]}."
            )
        mean, log_variance = outputs.split(self.dim, dim=1)
        deviation = (log_variance / 2).exp()
        (split,) = shardings(self.group, batch.x)
        noise = torch.randn(2, split.total, self.dim, generator=self.draws)[:, split.own]
        z = mean + deviation * noise.reshape(mean.shape).to(mean)
        shown = functional.binary_cross_entropy_with_logits(
            self.decoder(z).flatten(1), x.flatten(1), reduction="none"
        ).sum(dim=1)
        other = mean.roll(len(batch.x), dims=0)
        slow = laplace_divergence(mean - other, deviation, self.rate)
        divergence = self.beta * normal_divergence(mean, deviation) + self.gamma * slow
        loss = shown + divergence.sum(dim=1)
        return split.mean(loss.view(2, -1).mean(dim=0))


def normal_divergence(mean: Tensor, deviation: Tensor) -> Tensor:
    r"""Return :math:`KL(N(\mu, \sigma^2) \| N(0, 1))`, element by element."""
    return (mean.square() + deviation.square() - 1) / 2 - deviation.log()


def laplace_divergence(mean: Tensor, deviation: Tensor, rate: float) -> Tensor:
    r"""Return :math:`KL(N(\mu, \sigma^2) \| \mathrm{Lap}(0, \lambda))`, element by element.

    With :math:`E|z| = \sigma \sqrt{2 / \pi}\, e^{-\mu^2 / 2 \sigma^2} + \mu\,
    \mathrm{erf}(\mu / \sigma \sqrt{2})`.
    """
    ratio = mean / (deviation * math.sqrt(2))
    size = deviation * math.sqrt(2 / math.pi) * (-ratio.square()).exp() + mean * ratio.erf()
    entropy = deviation.log() + math.log(2 * math.pi * math.e) / 2
    return rate * size - math.log(rate / 2) - entropy


def image_decoder(dim_in: int, shape: Sequence[int]) -> nn.Sequential:
    """Build the mirror of the body ``kitti``: from latents ``(N, n)`` to logits of pixels."""
    channels, height, width = (int(size) for size in shape)
    if height % 16 or width % 16:
        raise DemixError(
            f"A decoder makes images whose sides are multiples of 16, but got {height} x {width}."
        )
    low = (64, height // 16, width // 16)
    layers: list[nn.Module] = [
        nn.Linear(dim_in, 256),
        nn.ReLU(),
        nn.Linear(256, low[0] * low[1] * low[2]),
        nn.ReLU(),
        nn.Unflatten(1, low),
    ]
    for width_in, width_out in ((64, 64), (64, 32), (32, 32)):
        layers += [nn.ConvTranspose2d(width_in, width_out, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, channels, 4, 2, 1))
