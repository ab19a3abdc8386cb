"""Distributions of processes, declared by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from demix.distributions.base import Conditional, Marginal, Uniform
from demix.distributions.generalized_normal import GeneralizedNormal, Laplace, Normal
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.spaces.base import Space


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
