"""The log-sum-exp over all pairs in plain torch, tile by tile: any device, any similarity."""

from collections.abc import Iterator

import torch
from torch import Tensor

from demix._support.kernel.calls import lowest_exponent
from demix.losses.similarities import PairBlock

_TILE = 2**19  # elements: small against any encoder, enough to keep all cores busy


def logsumexp(block: PairBlock, columns: bool) -> tuple[Tensor, Tensor | None]:
    """Return the log-sum-exp along the rows ``(B,)`` and, if asked, the columns ``(K,)``."""
    q, k = block.q, block.k
    rows = q.new_empty(len(q))
    highest = k.new_full((len(k),), -torch.inf)
    total = k.new_zeros(len(k))
    for part, tile in _tiles(block):
        top = finite(tile.amax(dim=1, keepdim=True))
        rows[part] = _exp(tile - top).sum(dim=1).log() + top[:, 0]
        if columns:
            # A running maximum keeps the column sums in range; -inf stands for "nothing yet".
            higher = torch.maximum(highest, tile.amax(dim=0))
            shift = finite(higher)
            total *= torch.exp(highest - shift)
            total += _exp(tile.sub_(shift)).sum(dim=0)
            highest = higher
    return rows, torch.where(highest.isinf(), highest, total.log() + highest) if columns else None


def gradient(
    block: PairBlock, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Return the gradients ``(B, d)`` and ``(K, d)``, given both results and their gradients."""
    q, k = block.q, block.k
    grad_q, grad_k = torch.empty_like(q), torch.zeros_like(k)
    for part, tile in _tiles(block):
        weight = _exp(tile - rows[0][part, None]).mul_(rows[1][part, None])
        if columns is not None:
            weight += _exp(tile.sub_(finite(columns[0]))).mul_(columns[1])
        grad_q[part], to_k = block.similarity.pull(q[part], k, weight)
        grad_k += to_k
    return grad_q, grad_k


def _tiles(block: PairBlock) -> Iterator[tuple[slice, Tensor]]:
    """Yield ``(slice of rows, tile)``, skipped pairs at ``-inf``."""
    q, k, similarity, skip = block
    # With many keys a tile may weigh as much as they do: fewer queries would only cost time.
    step = max(q.shape[1], _TILE // len(k))
    for start in range(0, len(q), step):
        part = slice(start, min(start + step, len(q)))
        tile = similarity.tile(q[part], k)
        if skip is not None:
            left_out = skip[part]
            (with_one,) = torch.nonzero(left_out >= 0, as_tuple=True)
            tile[with_one, left_out[with_one]] = -torch.inf
        yield part, tile


def _exp(tile: Tensor) -> Tensor:
    return tile.clamp_min_(lowest_exponent(tile.dtype)).exp_()


def finite(maxima: Tensor) -> Tensor:
    """Replace ``-inf``, which stands for a sum over nothing, by zero."""
    return torch.where(maxima == -torch.inf, 0, maxima)
