"""Latents made of several parts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space


class Product(Space):
    r"""The product :math:`Z_1 \times \dots \times Z_k`; a latent is the parts side by side.

    A part may be given as what its ``to_dict`` returned.

    Examples
    --------
    >>> from demix import Box, Product, Sphere
    >>> Product([Sphere(3), Box(2)]).dim
    5
    """

    def __init__(self, parts: Sequence[Space | dict[str, Any]]) -> None:
        spaces = [Space.from_dict(part) if isinstance(part, dict) else part for part in parts]
        if not spaces or not all(isinstance(space, Space) for space in spaces):
            raise DemixError(f"A product needs at least one space, but got {parts!r}.")
        self._parts = tuple(spaces)
        self.dim = sum(space.dim for space in spaces)
        self.convex = all(space.convex for space in spaces)

    @property
    def parts(self) -> tuple[Space, ...]:
        """The spaces that this is a product of."""
        return self._parts

    def split(self, z: Tensor) -> tuple[Tensor, ...]:
        """Cut ``(..., n)`` into the coordinates of each part."""
        return z.split([part.dim for part in self.parts], dim=-1)

    def _each(self, z: Tensor, act: Callable[[Space, Tensor], Tensor]) -> list[Tensor]:
        return [act(part, piece) for part, piece in zip(self.parts, self.split(z), strict=True)]

    @property
    def log_volume(self) -> float:
        """Sum over the parts."""
        return math.fsum(part.log_volume for part in self.parts)

    @property
    def scale_size(self) -> int:
        """The sizes of all parts, one after the other."""
        return sum(part.scale_size for part in self.parts)

    def expand_scale(self, scale: Tensor) -> Tensor:
        """Let each part spread its own size over its coordinates."""
        pieces = scale.split([part.scale_size for part in self.parts])
        spread = [part.expand_scale(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return torch.cat(spread)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw each part on its own."""
        return torch.cat([part.uniform(size, generator=generator) for part in self.parts], dim=-1)

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Ask every part."""
        inside = self._each(z, lambda part, piece: part.contains(piece, atol))
        return torch.stack(inside).all(dim=0)

    def project(self, z: Tensor) -> Tensor:
        """Project each part."""
        return torch.cat(self._each(z, lambda part, piece: part.project(piece)), dim=-1)

    def squash(self, z: Tensor) -> Tensor:
        """Squash each part."""
        return torch.cat(self._each(z, lambda part, piece: part.squash(piece)), dim=-1)

    def config(self) -> dict[str, Any]:
        """Return the parts, each as plain data."""
        return {"parts": [part.to_dict() for part in self.parts]}
