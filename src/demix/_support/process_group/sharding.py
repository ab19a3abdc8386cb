"""How rows are sharded over ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError
from demix._support.process_group.exchange import collected, gathered
from demix._support.process_group.group import checked_group


@dataclass(frozen=True)
class Sharding:
    """The number of rows on each rank, the rank of this process, and the group (None if alone)."""

    sizes: tuple[int, ...]
    rank: int = 0
    group: dist.ProcessGroup | None = None

    @property
    def total(self) -> int:
        """Rows on all ranks."""
        return sum(self.sizes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each rank."""
        return tuple(sum(self.sizes[:rank]) for rank in range(len(self.sizes)))

    @property
    def own(self) -> slice:
        """The rows of this process among all."""
        start = sum(self.sizes[: self.rank])
        return slice(start, start + self.sizes[self.rank])

    def gathered(self, x: Tensor) -> Tensor:
        """Return the rows ``(total, ...)`` of all ranks, with gradients."""
        return x if self.group is None else gathered(x, self.sizes, self.group)

    def collected(self, x: Tensor) -> Tensor:
        """Return the rows ``(total, ...)`` of all ranks on rank 0, and ``x`` on the others."""
        return x if self.group is None else collected(x, self.sizes, self.group)

    def mean(self, x: Tensor) -> Tensor:
        r"""Return the mean ``()`` of this rank's numbers ``(n,)``, weighted by its share of rows.

        .. math:: \frac{R}{\sum_s n_s} \sum_i x_i

        on :math:`R` ranks with :math:`n_s` rows each. Its average over ranks is the mean over all
        rows.
        """
        if self.group is None:
            return x.mean()
        if self.total == 0:
            raise DemixError("A batch must have at least one row, but no rank has any.")
        return x.sum() * len(self.sizes) / self.total


def shardings(group: dist.ProcessGroup | None, *arrays: Tensor) -> list[Sharding]:
    """Return how the rows of each array are sharded, after one exchange of a few numbers.

    Ranks may have different numbers of rows, but of the same shape.

    Examples
    --------
    >>> import torch
    >>> from demix._support.process_group.sharding import shardings
    >>> shardings(None, torch.zeros(3, 2))
    [Sharding(sizes=(3,), rank=0, group=None)]
    """
    group = checked_group(group)
    if group is None:
        return [Sharding((len(x),)) for x in arrays]
    ranks = dist.get_world_size(group)
    own = torch.tensor([[len(x), math.prod(x.shape[1:])] for x in arrays]).to(arrays[0].device)
    found = list(own.new_empty(ranks, *own.shape))
    dist.all_gather(found, own, group=group)
    counts = torch.stack(found).cpu()
    if bool((counts[..., 1] != counts[0, :, 1]).any()):
        raise DemixError(
            "Ranks must hold rows of one width, but have rows of "
            f"{', '.join(str(row[:, 1].tolist()) for row in counts)} numbers."
        )
    rank = dist.get_rank(group)
    return [Sharding(tuple(sizes), rank, group) for sizes in counts[..., 0].T.tolist()]


def even_sharding(total: int, group: dist.ProcessGroup | None) -> Sharding:
    """Return the most even sharding of ``total`` rows, without an exchange.

    Examples
    --------
    >>> from demix._support.process_group.sharding import even_sharding
    >>> even_sharding(10, None).own
    slice(0, 10, None)
    """
    group = checked_group(group)
    if group is None:
        return Sharding((total,))
    ranks = dist.get_world_size(group)
    edges = [total * rank // ranks for rank in range(ranks + 1)]
    return Sharding(tuple(b - a for a, b in pairwise(edges)), dist.get_rank(group), group)
