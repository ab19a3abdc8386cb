"""What a variant may change: a laptop plan, taken apart into plain data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from demix.losses.objective import Objective
from demix.papers.runner.scales import Scale
from demix.papers.zimmermann2021.pairs import PairRow
from demix.spaces.base import Space
from demix.training.recipe import Recipe


@dataclass(frozen=True)
class Body:
    """The network between whitening and output space; built by :mod:`benchmarks.search.bodies`."""

    hidden: tuple[int, ...]
    activation: str
    kind: str = "residual"
    norm: str = "none"
    inner: int = 0
    input_skip: bool = False
    start: str = "kaiming"


@dataclass(frozen=True)
class Optimiser:
    """The rule for the matrices; vectors keep Adam. The last four multiply a part's rate."""

    name: str = "muon"
    momentum: float = 0.95
    nesterov: bool = True
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    orthogonal: str = "quintic"
    ns_steps: int = 5
    ends_by_adam: float | None = None
    first: float = 1.0
    last: float = 1.0
    biases: float = 1.0
    size: float = 1.0


@dataclass(frozen=True)
class Plan:
    """Everything that a training needs besides data, steps and a seed.

    ``batches`` are stages ``(until this share of the steps, times the batch)``; ``averaging`` is a
    kind and the share of the steps it spans; ``again`` draws other weights and samples.
    """

    dim: int
    space: Space
    size: float
    objective: Objective
    recipe: Recipe
    body: Body
    optimiser: Optimiser = field(default_factory=Optimiser)
    within: int | None = None
    decay: str = "cosine"
    averaging: tuple[str, float] = ("none", 0.0)
    batches: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    precision: str = "float32"
    inputs: str = "whitened"
    again: int = 0

    def batch(self, share: float) -> int:
        """Return the pairs of a step after ``share`` of all steps."""
        factor = next(factor for until, factor in self.batches if share < until)
        return round(factor * self.recipe.batch)

    def rate_factor(self, step: int, steps: int) -> float:
        """Return the share of the peak rates at ``step`` (counted from 0) of ``steps``."""
        rise = self.recipe.warmup * steps
        if step < rise:
            return (step + 1) / (rise + 1)
        return _DECAYS[self.decay]((step - rise) / max(1.0, steps - rise))


def _hold(until: float, power: float = 1.0) -> Callable[[float], float]:
    return lambda u: 1.0 if u < until else 1 - ((u - until) / (1 - until)) ** power


def _cosine(u: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * u))


FOUND = "depth-4+inner-zero"

_DECAYS: dict[str, Callable[[float], float]] = {
    "cosine": _cosine,
    "cosine to a tenth": lambda u: 0.1 + 0.9 * _cosine(u),
    "linear": lambda u: 1 - u,
    "square": lambda u: (1 - u) ** 2,
    "linear from 30 %": _hold(0.3),
    "linear from 50 %": _hold(0.5),
    "linear from 70 %": _hold(0.7),
    "root from 50 %": _hold(0.5, power=0.5),
    "none": lambda u: 1.0,
}


def baseline(row: PairRow, scale: Scale) -> Plan:
    """Take apart what ``scale`` plans for ``row``, with the body that the search started from.

    The laptop plan of today is this with what the search found: :data:`FOUND`.
    """
    encoder, objective, recipe = row.plan(scale, "unsupervised")
    settings = encoder.settings
    return Plan(
        dim=scale.dim,
        space=encoder.space,
        size=round(float(encoder.scale.detach()[0]), 6),  # it went through a float32 logarithm
        objective=objective,
        recipe=recipe,
        body=Body(
            tuple(settings["hidden"][:1] * 8),
            settings["activation"],
            "residual" if settings["residual"] else "plain",
        ),
        optimiser=Optimiser(recipe.optimizer),
    )
