"""Similarities between queries and keys: tiles of their matrix, and gradients through them.

A tile is the block of the ``B x K`` matrix for some rows. Nothing makes a ``B x K x d`` array: the
L^p forms go through the ``d`` coordinates one at a time.
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from demix._support.errors import DemixError

SimilarityName = Literal["dot"] | float


class PairSimilarity(ABC):
    """How alike queries and keys are, ``s(q, k)``."""

    degree: float
    """``s(c q, c k) = c^degree s(q, k)`` (per argument for the dot product)."""

    compiled_as: int | None = None
    """Its number in ``_support/kernel/kernel.c``, if it is there."""

    @abstractmethod
    def paired(self, q: Tensor, k: Tensor) -> Tensor:
        """Return ``s(q_i, k_i)`` for each row of two ``(B, d)`` arrays, differentiably."""

    @abstractmethod
    def tile(self, q: Tensor, k: Tensor) -> Tensor:
        """Return ``s(q_i, k_j)`` as an ``(r, K)`` tile."""

    @abstractmethod
    def pull(self, q: Tensor, k: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients ``(r, d)`` and ``(K, d)`` of ``sum(weight * tile)``."""

    def coordinates(self, potential: Tensor, highest: Tensor) -> tuple[Tensor, float]:
        """Return a coordinate ``(K,)`` that adds a potential, up to a constant, and its partner."""
        # A power of a distance adds nothing above zero; one more, since roots have no slope there.
        return (highest + 1 - potential).pow(1 / self.degree), 0.0


class _DotProduct(PairSimilarity):
    """``q^T k`` (Eq. 1)."""

    degree = 2.0
    compiled_as = 0

    def paired(self, q: Tensor, k: Tensor) -> Tensor:
        return (q * k).sum(dim=-1)

    def tile(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.T

    def pull(self, q: Tensor, k: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return weight @ k, weight.T @ q

    def coordinates(self, potential: Tensor, highest: Tensor) -> tuple[Tensor, float]:
        return potential, 1.0


class _SquaredDistance(PairSimilarity):
    """``-|q - k|_2^2``, as a matrix product."""

    degree = 2.0
    compiled_as = 2

    def paired(self, q: Tensor, k: Tensor) -> Tensor:
        return -(q - k).square().sum(dim=-1)

    def tile(self, q: Tensor, k: Tensor) -> Tensor:
        centre = k.mean(dim=0)  # expanded about it, rounding hurts least
        q, k = q - centre, k - centre
        squares = q.square().sum(dim=1, keepdim=True) + k.square().sum(dim=1)
        return torch.addmm(squares, q, k.T, beta=-1, alpha=2).clamp_max_(0)

    def pull(self, q: Tensor, k: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        to_q = 2 * (weight @ k - weight.sum(dim=1, keepdim=True) * q)
        to_k = 2 * (weight.T @ q - weight.sum(dim=0)[:, None] * k)
        return to_q, to_k


class _PowerDistance(PairSimilarity):
    """``-|q - k|_p^p`` for any ``p`` (Eq. 6)."""

    def __init__(self, p: float) -> None:
        self.degree = p
        self.compiled_as = {1.0: 1, 3.0: 3}.get(p)

    def paired(self, q: Tensor, k: Tensor) -> Tensor:
        return -(q - k).abs().pow(self.degree).sum(dim=-1)

    def tile(self, q: Tensor, k: Tensor) -> Tensor:
        tile = q.new_zeros(len(q), len(k))
        gap = torch.empty_like(tile)
        for q_i, k_i in zip(q.T, k.T.contiguous(), strict=True):
            torch.sub(q_i[:, None], k_i, out=gap).abs_()
            tile -= gap if self.degree == 1 else gap.pow_(self.degree)
        return tile

    def pull(self, q: Tensor, k: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        to_q, to_k = torch.empty_like(q), torch.empty_like(k)
        gap, slope = torch.empty_like(weight), torch.empty_like(weight)
        for i, (q_i, k_i) in enumerate(zip(q.T, k.T.contiguous(), strict=True)):
            torch.sub(q_i[:, None], k_i, out=gap)
            if self.degree > 2:  # as gap |gap|^(p - 2), which costs fewer passes
                torch.abs(gap, out=slope)
                slope = slope if self.degree == 3 else slope.pow_(self.degree - 2)
                slope *= gap
            else:
                torch.sign(gap, out=slope)
                slope = slope if self.degree == 1 else slope.mul_(gap.abs_().pow_(self.degree - 1))
            slope *= weight
            to_q[:, i] = slope.sum(dim=1)
            to_k[:, i] = slope.sum(dim=0)
        return to_q.mul_(-self.degree), to_k.mul_(self.degree)


class PairBlock(NamedTuple):
    """Queries ``(B, d)``, keys ``(K, d)``, and for each query one to ``skip`` ``(B,)``, or -1."""

    q: Tensor
    k: Tensor
    similarity: PairSimilarity
    skip: Tensor | None = None


def similarity_named(kind: SimilarityName) -> PairSimilarity:
    """Return the similarity called ``"dot"`` or ``p``."""
    if kind == "dot":
        return _DotProduct()
    if isinstance(kind, int | float) and not isinstance(kind, bool) and 1 <= kind < float("inf"):
        return _SquaredDistance() if kind == 2 else _PowerDistance(float(kind))
    raise DemixError(f'similarity must be "dot" or p >= 1 for -|q - k|_p^p, but got {kind!r}.')
