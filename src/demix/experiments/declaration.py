"""What an experiment is: a table or figure of a paper, declared as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from demix.distributions import (
    Conditional,
    GeneralizedNormal,
    Laplace,
    Marginal,
    Normal,
    Uniform,
    VonMisesFisher,
)
from demix.objectives import Kind
from demix.processes import LeakyMixing, Process
from demix.spaces import Box, Real, Space, Sphere

Model = Literal["identity", "supervised", "unsupervised"]
Figure = tuple[float, float]
"""A published mean and standard deviation, in percent."""


@dataclass(frozen=True)
class Distribution:
    """A distribution by name: ``Distribution("gennorm", 0.05, p=3)``."""

    kind: Literal["uniform", "vmf", "normal", "laplace", "gennorm"]
    width: float = 0.0
    p: float = 2.0

    def conditional(self, space: Space) -> Conditional:
        """Build it as a conditional on ``space``."""
        if self.kind == "vmf":
            return VonMisesFisher(space, self.width)
        if self.kind == "normal":
            return Normal(space, self.width)
        if self.kind == "laplace":
            return Laplace(space, self.width)
        return GeneralizedNormal(space, self.p, self.width)

    def marginal(self, space: Space) -> Marginal:
        """Build it as a marginal on ``space``, around the paper's centre."""
        return Uniform(space) if self.kind == "uniform" else self.conditional(space).at()

    def __str__(self) -> str:
        names = {"uniform": "Uniform", "normal": "Normal(σ={})", "laplace": "Laplace(λ={})"}
        names |= {"vmf": "vMF(κ={})", "gennorm": f"GenNorm(β={self.p:g}, λ={{}})"}
        return names[self.kind].format(f"{self.width:g}")


@dataclass(frozen=True)
class Laptop:
    """How a row is trained at laptop scale.

    ``scale`` is where the size of the output space starts; ``group`` is that of
    :class:`demix.InfoNCE`.
    """

    scale: float
    steps: int = 3000
    batch: int = 1024
    group: int | None = None


@dataclass(frozen=True)
class Row:
    """One row of a table: a process, a model of it, and what the paper reports.

    ``limit`` chooses :class:`demix.AlignmentUniformity` over :class:`demix.InfoNCE`, for pairs
    that carry more information than a batch can tell apart. ``paper`` has an entry for each model
    type that the row runs; its value is None where the paper gives no figure.
    """

    number: int
    space: Literal["sphere", "box", "real"]
    marginal: Distribution
    conditional: Distribution
    model_space: Literal["sphere", "box", "real"]
    similarity: Kind
    laptop: Laptop
    limit: bool = False
    matched: bool = False
    paper: dict[Model, Figure | None] = field(default_factory=dict)

    def process(self, dim: int, *, seed: int, draws: int) -> Process:
        """Build the generating process with ``dim`` latents; each seed has its own mixing."""
        space = space_named(self.space, dim)
        return Process(
            self.marginal.marginal(space),
            self.conditional.conditional(space),
            LeakyMixing(dim, seed=seed, draws=draws),
        )

    @property
    def assumed(self) -> str:
        """The model's conditional, in the paper's words."""
        if self.similarity == "dot":
            return "vMF"
        return {1: "Laplace", 2: "Normal"}.get(
            int(self.similarity), f"GenNorm(β={self.similarity:g})"
        )


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its rows and the score it is about."""

    name: str
    title: str
    score: Literal["r2", "mcc"]
    rows: tuple[Row, ...]
    source: str


def space_named(name: str, dim: int) -> Space:
    """Return the paper's ``"sphere"``, ``"box"`` (the unit box) or ``"real"`` space."""
    return {"sphere": Sphere, "box": Box, "real": Real}[name](dim)
