"""Rows of Table 3: nearby frames of videos, and models of how they differ, SlowVAE among them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.sharding import shardings
from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective, PairBatch
from demix.losses.pairs import InfoNCE
from demix.losses.similarities import SimilarityName
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.datasets.masks import KittiMasks, kitti_masks
from demix.papers.runner.experiment import Experiment, InputFiles
from demix.papers.runner.run import Run, held_out, trained_facts
from demix.papers.runner.scales import Scale
from demix.papers.runner.score_rows import ScoreRow
from demix.papers.zimmermann2021.pairs import SPACES
from demix.processes.process import Pairs
from demix.spaces.kinds import Real, space_named
from demix.training.recipe import Recipe

_ASSUMED: dict[SimilarityName | None, str] = {1: "Laplace", 2: "Normal", None: "SlowVAE"}
_SECONDS = {1: 0.05, 5: 0.15}
# Peak rates of the last layer, by space and distance. Neighbouring frames differ less, so that
# latents grow large compared with what they differ by.
_LAST_RATE = {("real", 1): 0.1, ("real", 5): 0.005, ("box", 1): 0.05, ("box", 5): 0.05}
LATENTS = 10
SIDE = 64
# Small masks take little time, and show where pedestrians are more than who they are. SlowVAE draws
# what it sees, and needs more pixels.
_LAPTOP_SIDE, _LAPTOP_SIDE_SLOWVAE = 16, 32
# Frames that are scored: during training, in the end, and at smoke scale.
_EVALUATED, _SCORED, _SMOKE = 2000, 10_000, 200


@dataclass(frozen=True)
class VideoRow(ScoreRow):
    """Frames at most ``delta`` apart, and a model of them; without a similarity, SlowVAE."""

    delta: int
    similarity: SimilarityName | None
    space: Literal["box", "real"]

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        return f"{_ASSUMED[self.similarity]}, {SPACES[self.space]}, {_SECONDS[self.delta]} s"

    def columns(self) -> dict[str, str]:
        """Describe pairs and model for the columns of a table."""
        return {
            "frames apart": f"up to {self.delta}",
            "model": _ASSUMED[self.similarity],
            "space": SPACES[self.space],
        }

    def plan(self, scale: Scale, model: str) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe."""
        paper = scale.name == "paper"
        slowvae = model == "slowvae"
        side = SIDE if paper else _LAPTOP_SIDE_SLOWVAE if slowvae else _LAPTOP_SIDE
        shape = (1, side, side)
        objective: Objective[Any]
        if self.similarity is None:
            objective = SlowVAE(LATENTS, shape)
            encoder = Encoder(shape, Real(2 * LATENTS), body="kitti")
        else:
            objective = InfoNCE(self.similarity, two_sided=not paper)
            # A box that starts too small has no time to grow in few steps.
            size = 5.0 if self.space == "box" and not paper else 1.0
            encoder = Encoder(shape, space_named(self.space, LATENTS), body="kitti", scale=size)
        # A body that learns fast distinguishes pedestrians, not where they are. A last layer that
        # turns fast soon has the axes that its model asks for, if it asks for any.
        recipe = Recipe(
            steps=300_000 if paper else 8000,
            batch=32,
            optimizer="adam" if paper or slowvae else "muon_last",
            matrix_rate=_LAST_RATE[self.space, self.delta],
            rate=1e-4 if paper else 3e-4,
            warmup=0.0 if paper else 0.02,
            decay=not paper,
            whiten=False,
            initialise=False,
            bf16=not paper,
        )
        return encoder, objective, replace(recipe, steps=20, batch=16) if scale.smoke else recipe

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> KittiMasks:
        """Open annotations of videos."""
        return kitti_masks(*files.paths)

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model, as in the paper on frames it has seen; None if interrupted."""
        data: KittiMasks = run.inputs
        objective: Any
        encoder, objective, recipe = plan = run.plan(self.plan)
        order = torch.randperm(len(data), generator=held_out(run.seed))
        side = encoder.settings["dim_in"][1]

        def reduced(masks: Tensor) -> Tensor:
            return functional.adaptive_avg_pool2d(masks.float(), side)

        def sample(size: int, *, generator: torch.Generator) -> Pairs:
            pairs = data.sample(size, max_delta_t=self.delta, generator=generator)
            return pairs._replace(x=reduced(pairs.x), x_tilde=reduced(pairs.x_tilde))

        def scored(encoder: Encoder, count: int) -> dict[str, float]:
            rows = order[: _SMOKE if run.scale.smoke else count].sort().values.numpy()
            masks = torch.from_numpy(data.masks[rows])
            latents = torch.cat([encoder(reduced(part)) for part in masks.split(1000)])
            if self.similarity is None:
                latents = objective.latents(latents)
            factors = data.factors[rows]
            return {
                "mcc": float(mean_correlation(latents, factors, method="spearman")),
                "r2": float(affine_r2(latents, factors)),
            }

        training = run.train(
            plan, sample, lambda encoder: {"score": 100 * scored(encoder, _EVALUATED)["mcc"]}
        )
        if training is None:
            return None
        with torch.no_grad():
            scores = scored(encoder, _SCORED)
        return {
            **scores,
            **trained_facts(training, recipe),
            "nats_above_optimum": None,
            "objective": "SlowVAE" if self.similarity is None else repr(objective),
            "frames": len(data),
            "sequences": data.n_sequences,
        }


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
    >>> from demix.papers import SlowVAE
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
