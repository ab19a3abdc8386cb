"""What both papers share: distributions by name, their encoder, Adam, the error to latents."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from demix._support.process_group.sharding import shardings
from demix.distributions.base import Conditional, Marginal, Uniform
from demix.distributions.generalized_normal import GeneralizedNormal, Laplace, Normal
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.pairs import PairObjective
from demix.processes.process import Pairs
from demix.spaces.base import Space
from demix.training.recipe import Recipe


@dataclass(frozen=True)
class Distribution:
    """A distribution by name: ``Distribution("gennorm", 0.05, p=3)``."""

    kind: Literal["uniform", "vmf", "normal", "laplace", "gennorm"]
    width: float = 0.0
    p: float = 2.0
    limit: float = float("inf")

    def conditional(self, space: Space) -> Conditional:
        """Build it as a conditional on ``space``."""
        if self.kind == "vmf":
            return VonMisesFisher(space, self.width)
        if self.kind == "normal":
            return Normal(space, self.width)
        if self.kind == "laplace":
            return Laplace(space, self.width, limit=self.limit)
        return GeneralizedNormal(space, self.p, self.width, limit=self.limit)

    def marginal(self, space: Space) -> Marginal:
        """Build it as a marginal on ``space``, around the paper's centre."""
        return Uniform(space) if self.kind == "uniform" else self.conditional(space).at()

    def __str__(self) -> str:
        names = {"uniform": "Uniform", "normal": "Normal(σ={})", "laplace": "Laplace(λ={})"}
        names |= {"vmf": "vMF(κ={})", "gennorm": f"GenNorm(β={self.p:g}, λ={{}})"}
        text = names[self.kind].format(f"{self.width:g}")
        return text if self.limit == float("inf") else f"{text} within ±{self.limit:g}"


def paper_encoder(
    dim_in: int, space: Space, *, scale: float = 1.0, batch_norm: bool = False
) -> Encoder:
    """Build the papers' encoder: ``n*10, n*50 x 4, n*10`` LeakyReLU units (App. A.3).

    Reizinger et al. (2024) normalise each layer over the batch.
    """
    n = space.dim
    hidden = (10 * n, *(4 * [50 * n]), 10 * n)
    body: dict[str, Any] = {"activation": "leaky_relu", "residual": False, "batch_norm": batch_norm}
    return Encoder(dim_in, space, hidden=hidden, scale=scale, **body)


def plain_adam(*, steps: int, batch: int, rate: float) -> Recipe:
    """Return the papers' kind of training: Adam at one rate, from torch's own initialisation."""
    plain: dict[str, Any] = {"warmup": 0.0, "decay": False, "whiten": False, "initialise": False}
    return Recipe(steps=steps, batch=batch, optimizer="adam", rate=rate, **plain)


@dataclass(frozen=True)
class LatentMSE(PairObjective[Pairs]):
    """Mean squared error to the true latents: the upper bound of Tables 1 and 2."""

    def __call__(self, encoder: Encoder, pairs: Pairs) -> Tensor:
        """Compare ``f(g(z))`` with ``z`` for all latents of the batch."""
        observations = torch.cat([pairs.x, pairs.x_tilde])
        latents, true = encoder(observations), torch.cat([pairs.z, pairs.z_tilde])
        (split,) = shardings(self.group, latents)
        if split.group is None:
            return functional.mse_loss(latents, true)
        return split.mean((latents - true).square().mean(dim=1))
