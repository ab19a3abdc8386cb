"""The contracts of marginals, conditionals and noise models, and the uniform marginal."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np
import torch
from scipy import optimize
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space

Generator = torch.Generator | np.random.Generator
"""A source of random numbers."""

SHAPES = (0.4, 12.0)
"""The shapes ``p`` that a fit tells apart; beyond them noise is a spike or a block."""
_MOST, _LEAST = 2000, 1e-12  # pairs that a fit uses, and the smallest scale it gives


@dataclass(frozen=True)
class Similarity:
    """The similarity that a conditional implies, Eqs. 2 and 5 of Zimmermann et al. (2021).

    ``log p(z~ | z) = rate * s(z, z~) + const`` where ``s`` is the dot product (``kind="dot"``) or
    :math:`-|z - z~|_p^p` (``kind=p``), and ``rate`` is ``kappa`` or ``scale ** -p``. It is not
    ``exact`` where the density only resembles this form (noise projected on a sphere).
    """

    kind: Literal["dot"] | float
    rate: float
    exact: bool = True

    def of(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return ``rate * s(z, anchor)`` for each row."""
        if self.kind == "dot":
            return self.rate * (z * anchors).sum(dim=-1)
        return -self.rate * (z - anchors).abs().pow(self.kind).sum(dim=-1)


class Marginal(ABC):
    """A distribution ``p(z)`` of latents on a space; ``uniform`` says whether it is constant."""

    space: Space
    uniform: bool = False

    @abstractmethod
    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw ``(size, n)`` latents on the generator's device."""

    @abstractmethod
    def log_prob(self, z: Tensor) -> Tensor:
        """Return ``log p(z)`` for each row of ``z`` ``(N, n)``."""


class Uniform(Marginal):
    r"""The uniform distribution :math:`p(z) = |Z|^{-1}` of the theorems (Eqs. 2, 5, 8).

    Examples
    --------
    >>> from demix import Sphere, Uniform
    >>> Uniform(Sphere(3)).sample(5).shape
    torch.Size([5, 3])
    """

    uniform = True

    def __init__(self, space: Space) -> None:
        if not space.bounded:
            raise DemixError(f"A uniform marginal needs a bounded space, but got {space!r}.")
        self.space = space

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw uniform latents."""
        return self.space.uniform(size, generator=generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return ``-log |Z|`` inside the space, ``-inf`` outside."""
        constant = torch.full(z.shape[:-1], -self.space.log_volume, dtype=z.dtype, device=z.device)
        return torch.where(self.space.contains(z), constant, -torch.inf)

    def __repr__(self) -> str:
        return f"Uniform({self.space!r})"


class Conditional(ABC):
    """A distribution ``p(z~ | z)`` of positives around anchors on a space."""

    space: Space

    @property
    @abstractmethod
    def similarity(self) -> Similarity:
        """The similarity that this conditional implies."""

    @abstractmethod
    def sample(self, anchors: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw one positive ``z~`` for each anchor ``(N, n)``, on the anchors' device."""

    @abstractmethod
    def log_prob(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return ``log p(z | anchor)`` for each row of ``z`` ``(N, n)``."""

    @abstractmethod
    def mean_entropy(self) -> float:
        """Return the entropy of ``p(. | z)`` in nats, averaged over uniform ``z``."""

    def at(self) -> Marginal:
        """Return the marginal around a pole or the origin, or around the nearest point to it."""
        return Around(self)


class Around(Marginal):
    """A conditional with its anchor held fixed, used as a marginal."""

    def __init__(self, conditional: Conditional) -> None:
        self.space, self.conditional = conditional.space, conditional
        self.center = self.space.project(torch.zeros(self.space.dim))

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw around the centre."""
        device = None if generator is None else generator.device
        return self.conditional.sample(self.center.to(device).expand(size, -1), generator=generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the conditional's density at the centre."""
        return self.conditional.log_prob(z, self.center.to(z).expand_as(z))

    def __repr__(self) -> str:
        return f"{self.conditional!r}.at()"


class NoiseModel(Conditional):
    r"""Noise of density :math:`\propto \exp(-(|\tilde z - z| / \lambda)^p)`, to be fitted to pairs.

    ``p`` is its shape and ``scale`` is :math:`\lambda`.
    """

    p: float
    scale: float

    @abstractmethod
    def sample(self, anchors: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Draw one positive for each anchor ``(N, n)``, from a generator of torch or NumPy."""

    @abstractmethod
    def with_noise(self, p: float, scale: float) -> "NoiseModel":
        """Return the noise of another shape and scale on the same space."""

    @abstractmethod
    def quantiles(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return how large the noise is, as quantiles ``(N, k)``: uniform if the model holds."""

    @abstractmethod
    def residuals(self, z: Tensor, anchors: Tensor) -> Tensor:
        """Return the noise ``(N, n)``, without mean or direction if the model holds."""

    def fitted(self, z: Tensor, anchors: Tensor, *, shape: bool) -> "NoiseModel":
        """Return the model of the largest likelihood, with ``shape`` over the shape, too."""
        step = max(1, len(z) // _MOST)  # of very many pairs some that are evenly spread
        z, anchors = z[::step], anchors[::step]
        terms = self.quantiles(z[:1], anchors[:1]).shape[1]

        def at(logs: np.ndarray) -> "NoiseModel":
            scale = max(math.exp(logs[0]), _LEAST)
            return self.with_noise(math.exp(logs[1]) if shape else self.p, scale)

        def loss(logs: np.ndarray) -> float:
            if shape and not SHAPES[0] <= math.exp(logs[1]) <= SHAPES[1]:
                return math.inf
            return -float(at(logs).log_prob(z, anchors).mean()) / terms

        start = [math.log(self.scale)] + ([math.log(self.p)] if shape else [])
        steps = np.array([start, *(np.array(start) + 0.5 * np.eye(len(start)))])
        options: dict[str, Any] = {"xatol": 2e-3, "fatol": 1e-6, "initial_simplex": steps}
        return at(optimize.minimize(loss, start, method="Nelder-Mead", options=options).x)

    def __repr__(self) -> str:
        _, *rest = signature(type(self)).parameters.values()
        given = {p.name: getattr(self, p.name) for p in rest if getattr(self, p.name) != p.default}
        words = [repr(self.space), *(f"{name}={number:g}" for name, number in given.items())]
        return f"{type(self).__name__}({', '.join(words)})"


def rand(
    shape: Sequence[int], like: Tensor, generator: Generator | None, *, normal: bool = False
) -> Tensor:
    """Return numbers in [0, 1), or normal ones, of the type and on the device of ``like``."""
    if isinstance(generator, np.random.Generator):
        draw = generator.normal if normal else generator.random
        return torch.from_numpy(draw(size=tuple(shape))).to(like)
    made = torch.randn if normal else torch.rand
    return made(shape, dtype=like.dtype, device=like.device, generator=generator)


def check_positive(value: float, name: str) -> float:
    """Return ``value`` as a float if it is positive and finite."""
    if not 0 < value < float("inf"):
        raise DemixError(f"{name} must be positive and finite, but got {value!r}.")
    return float(value)


def check_conditional(conditional: Conditional, *, samples: int = 4096, seed: int = 0) -> None:
    """Verify that ``conditional``, on a bounded space, keeps :class:`demix.Conditional`'s contract.

    Raises a :class:`demix.DemixError` that names the law that is broken. The mean of ``-log_prob``
    must agree with ``mean_entropy`` (four standard errors), which fails unless density and sampler
    agree and the density is normalised.

    Examples
    --------
    >>> from demix import Sphere, VonMisesFisher, check_conditional
    >>> check_conditional(VonMisesFisher(Sphere(4), kappa=5.0))
    """
    space = conditional.space

    def demand(holds: bool, law: str) -> None:
        if not holds:
            raise DemixError(f"{conditional!r} breaks the contract of a conditional: {law}.")

    generator = torch.Generator().manual_seed(seed)
    anchors = space.project(space.uniform(samples, generator=generator).double())
    first, again = (
        conditional.sample(anchors, generator=torch.Generator().manual_seed(seed + 1))
        for _ in range(2)
    )
    demand(first.shape == anchors.shape, "sample must return one positive per anchor")
    demand(bool(space.contains(first).all()), "samples must lie in the space")
    demand(torch.equal(first, again), "sample must be driven by the generator alone")
    log_prob = conditional.log_prob(first, anchors)
    demand(log_prob.shape == (samples,), "log_prob must return one number per row")
    highest = conditional.log_prob(anchors, anchors)
    demand(bool((highest >= log_prob - 1e-9).all()), "the mode must be at the anchor")
    similarity = conditional.similarity
    if similarity.exact:
        other = conditional.sample(anchors, generator=torch.Generator().manual_seed(seed + 2))
        implied = similarity.of(first, anchors) - similarity.of(other, anchors)
        actual = log_prob - conditional.log_prob(other, anchors)
        demand(torch.allclose(implied, actual, atol=1e-6), "similarity must match log_prob")
    apart = abs(float(-log_prob.mean()) - conditional.mean_entropy())
    error = float(log_prob.std()) / samples**0.5
    demand(apart <= 4 * error + 1e-6, "samples, log_prob and mean_entropy must agree")
