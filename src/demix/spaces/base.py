"""The contract of a latent space."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor

from demix._support.errors import DemixError


class Space(ABC):
    """A set of latents ``Z`` in ``R^n``: where they live and how an encoder reaches it.

    To add a convex body, implement the abstract members and run :func:`demix.check_space`.

    Attributes
    ----------
    dim : int
        The ambient dimension ``n``.
    log_volume : float
        ``log |Z|`` (area for a sphere), ``inf`` for an unbounded space; used by Theorems 1 and 3.
    scale_size : int
        How many learnable numbers set the size of an encoder's output: a radius, or ``n`` sides.
    convex : bool
        Whether Theorems 5 and 6 of Zimmermann et al. (2021), for convex bodies, may apply.
    spherical : bool
        Whether all latents have one norm, so that distances and dot products rank them alike.
    separable : bool
        Whether the coordinates of uniform latents are independent.

    References
    ----------
    Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process, Sec. 3.
    """

    dim: int
    scale_size: int = 1
    convex: bool = True
    spherical: bool = False
    separable: bool = False
    _kinds: ClassVar[dict[str, type[Space]]] = {}

    def __init_subclass__(cls) -> None:
        Space._kinds[cls.__name__] = cls  # for model files, which name their space

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """``log |Z|``."""

    @property
    def parts(self) -> tuple[Space, ...]:
        """The spaces that this is a product of."""
        return (self,)

    def expand_scale(self, scale: Tensor) -> Tensor:
        """Spread ``scale`` ``(scale_size,)`` over the ``n`` dimensions."""
        return scale.expand(self.dim)

    @property
    def bounded(self) -> bool:
        """Whether the volume is finite, so that a uniform distribution exists."""
        return self.log_volume < math.inf

    @abstractmethod
    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw ``(size, n)`` uniform samples on the generator's device."""

    @abstractmethod
    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Return for each row of ``z`` ``(..., n)`` whether it lies in the space."""

    @abstractmethod
    def project(self, z: Tensor) -> Tensor:
        """Return the nearest point of the space for each row of ``z`` ``(..., n)``."""

    @abstractmethod
    def squash(self, z: Tensor) -> Tensor:
        """Map free encoder outputs ``(..., n)`` smoothly onto the interior of the space."""

    def config(self) -> dict[str, Any]:
        """Return the arguments that rebuild the space, as plain data: attributes of their names."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain data, for model files."""
        return {"kind": type(self).__name__, **self.config()}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Space:
        """Rebuild a space from what :meth:`to_dict` returned."""
        if not isinstance(data, dict):
            raise DemixError(f"A space is described by a dict, but got {data!r}.")
        arguments = dict(data)
        kind = arguments.pop("kind", None)
        if not isinstance(kind, str) or kind not in Space._kinds:
            known = ", ".join(sorted(Space._kinds))
            raise DemixError(f"Unknown space {kind!r}; known are {known}. Import its module first.")
        try:
            return Space._kinds[kind](**arguments)
        except TypeError as error:
            raise DemixError(f"{kind} cannot be built from {arguments!r}: {error}.") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        # Not of all of the data: 0.0 and -0.0, or 1 and 1.0, are equal but written differently.
        return hash((type(self).__name__, self.dim))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.config().items())
        return f"{type(self).__name__}({arguments})"


def check_dim(dim: int, least: int = 1) -> int:
    """Return ``dim`` if it can be the dimension of a space."""
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < least:
        raise DemixError(f"A space needs a whole dimension of at least {least}, but got {dim!r}.")
    return dim


def check_radius(radius: float, name: str) -> float:
    """Return ``radius`` if it is positive and finite, and so is its square in float32."""
    if not 1e-18 < radius < 1e18:
        raise DemixError(f"{name} needs a positive, finite radius, but got {radius!r}.")
    return float(radius)


def check_space(space: Space, *, samples: int = 512, seed: int = 0) -> None:
    """Verify that ``space`` keeps the contract of :class:`demix.Space`.

    Raises a :class:`demix.DemixError` that names the law that is broken for one of ``samples``
    random points: of shapes, projection, squashing, uniform samples, and rebuilding from data.

    Examples
    --------
    >>> from demix import Box, check_space
    >>> check_space(Box(3, low=-1.0, high=2.0))
    """
    generator = torch.Generator().manual_seed(seed)
    free = 3 * torch.randn((samples, space.dim), generator=generator)
    projected = space.project(free)

    def demand(holds: bool, law: str) -> None:
        if not holds:
            raise DemixError(f"{space!r} breaks the contract of a space: {law}.")

    def still(points: Tensor) -> bool:
        return torch.allclose(space.project(points), points, atol=1e-5)

    demand(projected.shape == free.shape, "project must keep the shape (N, n)")
    demand(bool(space.contains(projected).all()), "projected points must lie in the space")
    demand(still(projected), "project must be idempotent")
    raw = free.clone().requires_grad_()
    squashed = space.squash(raw)
    demand(squashed.shape == free.shape, "squash must keep the shape (N, n)")
    demand(bool(space.contains(squashed.detach()).all()), "squashed points must lie in the space")
    demand(squashed.requires_grad, "squash must be differentiable")
    (gradient,) = torch.autograd.grad(squashed.square().sum() + squashed.sum(), raw)
    demand(bool(gradient.isfinite().all()), "squash must have a finite gradient")
    spread = space.expand_scale(torch.ones(space.scale_size))
    demand(spread.shape == (space.dim,), "expand_scale must return one number per dimension")
    rebuilt = Space.from_dict(space.to_dict())
    same = rebuilt == space and torch.equal(rebuilt.project(free), projected)
    demand(same, "config must rebuild an equal space")
    if not space.bounded:
        return
    uniform = space.uniform(samples, generator=generator)
    demand(uniform.shape == free.shape, "uniform must return (size, n)")
    demand(bool(space.contains(uniform).all()), "uniform samples must lie in the space")
    demand(still(uniform), "project must not move points of the space")
    nearest = torch.cdist(free, uniform).min(dim=1).values
    reached = (free - projected).norm(dim=1)
    demand(bool((reached <= nearest + 1e-4).all()), "project must return the nearest point")
