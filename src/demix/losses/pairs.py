"""InfoNCE, and what losses over positive pairs share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError
from demix._support.process_group.group import checked_group
from demix._support.process_group.sharding import even_sharding, shardings
from demix.encoders.encoder import Encoder
from demix.losses.contrast import contrast, log_probabilities
from demix.losses.objective import Batch, Objective, PairBatch
from demix.losses.similarities import SimilarityName


@dataclass(frozen=True)
class PairObjective(Objective[Batch]):
    """A loss without parameters, given by its settings and the group its batches lie on."""

    group: dist.ProcessGroup | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        checked_group(self.group)

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Return the same loss for batches that lie on the ranks of a group."""
        return replace(self, group=group)


@dataclass(frozen=True)
class InfoNCE(PairObjective[PairBatch]):
    r"""The contrastive loss of Eq. 1 (dot product) or Eq. 6 (a distance) over a batch of pairs.

    The negatives of a pair are the other pairs; a sample is never its own negative.

    Parameters
    ----------
    similarity, temperature, two_sided, include_positive, group
        As in :func:`demix.contrast`. The encoder's learnable scale makes a temperature redundant.
    within : int, optional
        Contrast within groups of this many pairs. The optimal critic does not depend on the number
        of negatives, so when pairs carry little information a large batch in small groups gives
        a gradient almost as good as that of one large group at a fraction of its cost.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, InfoNCE, LeakyMixing, Process, Sphere, Uniform, VonMisesFisher
    >>> sphere = Sphere(3)
    >>> process = Process(
    ...     Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(3, seed=0, draws=100)
    ... )
    >>> InfoNCE()(Encoder(3, sphere), process.sample(64)).shape
    torch.Size([])
    """

    similarity: SimilarityName = "dot"
    temperature: float = 1.0
    two_sided: bool = True
    include_positive: bool = True
    within: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None and self.within < 2:
            raise DemixError(f"A group needs at least 2 pairs, but got {self.within!r}.")

    def __call__(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Encode both sides in one pass and contrast them."""
        queries, keys = both_sides(encoder, pairs)
        if self.within is None:
            return self._contrast(queries, keys, self.group)
        return mean_within(self._contrast, queries, keys, self.within, self.group)

    def _contrast(
        self, queries: Tensor, keys: Tensor, group: dist.ProcessGroup | None = None
    ) -> Tensor:
        names = ("similarity", "temperature", "two_sided", "include_positive")
        return contrast(queries, keys, group=group, **{name: getattr(self, name) for name in names})

    def log_probabilities(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the log-probability ``(N, N)`` of each positive for each anchor."""
        queries, keys = both_sides(encoder, pairs)
        return log_probabilities(queries, keys, self.similarity, self.temperature)


def both_sides(encoder: Encoder, pairs: PairBatch) -> tuple[Tensor, Tensor]:
    """Return the latents of anchors and of positives, ``(N, n)`` each, from one pass."""
    anchors, positives = encoder(torch.cat([pairs.x, pairs.x_tilde])).chunk(2)
    return anchors, positives


def mean_within(
    loss: Callable[[Tensor, Tensor], Tensor],
    queries: Tensor,
    keys: Tensor,
    size: int,
    group: dist.ProcessGroup | None,
) -> Tensor:
    """Return the mean over all pairs ``()`` of a loss that is taken within groups of ``size``.

    Each rank takes whole groups; pairs are exchanged only if shards do not end where groups do.
    """
    (split,) = shardings(group, queries)
    if split.total == 0:
        raise DemixError("A batch must have at least one pair, but got none.")
    if any(start % size for start in split.starts):
        both = split.gathered(torch.cat([queries, keys], dim=1))
        own = even_sharding(math.ceil(split.total / size), split.group).own
        queries, keys = both[size * own.start : size * own.stop].chunk(2, dim=1)
    # A rank without a group still takes part in the backward pass.
    losses = [queries[:0].sum() + keys[:0].sum()] if len(queries) == 0 else []
    parts = zip(queries.split(size), keys.split(size), strict=True)
    losses += [len(q) * loss(q, k) for q, k in parts if len(q)]
    return torch.stack(losses).sum() * len(split.sizes) / split.total
