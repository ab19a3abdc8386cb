"""The log-sum-exp over all pairs in compiled code, for processors with a C compiler at hand."""

import torch
from torch import Tensor

from demix._support.kernel import calls
from demix.losses.similarities import PairBlock
from demix.losses.tiles import finite


def serves(block: PairBlock) -> bool:
    """Tell whether there is compiled code for these arrays."""
    return block.similarity.compiled_as is not None and calls.serves(block.q, block.k)


def logsumexp(block: PairBlock, columns: bool) -> tuple[Tensor, Tensor | None]:
    """Do what the function of this name in ``tiles`` does."""
    q, k, threads = block.q, block.k, _threads(block)
    rows = q.new_empty(len(q))
    sums = k.new_full((threads, len(k)), -torch.inf) if columns else None  # each over its rows
    _call("logsumexp", block, threads, rows, sums)
    if sums is not None:
        sums = sums[0] if threads == 1 else sums.logsumexp(dim=0)
    return rows, sums


def gradient(
    block: PairBlock, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Do what the function of this name in ``tiles`` does."""
    q, k, threads = block.q, block.k, _threads(block)
    by_keys = len(k) > len(q)  # threads divide the longer side, with gradients of the other
    to_q = q.new_zeros(threads if by_keys else 1, *q.shape)
    to_k = k.new_zeros(1 if by_keys else threads, *k.shape)
    shifted = (None, None) if columns is None else (finite(columns[0]), columns[1])
    _call("gradient", block, threads, *rows, *shifted, to_q, to_k, by_keys)
    factor = 1.0 if block.similarity.compiled_as == 0 else block.similarity.degree
    return _together(to_q).mul_(factor), _together(to_k).mul_(factor)


def _together(parts: Tensor) -> Tensor:
    """Add what the threads made; one part is not copied."""
    return parts[0] if len(parts) == 1 else parts.sum(dim=0)


def _threads(block: PairBlock) -> int:
    return calls.threads_for(len(block.k) * block.q.numel())


def _call(name: str, block: PairBlock, threads: int, *arrays: Tensor | bool | None) -> None:
    q, k, similarity, skip = block
    sizes = len(q), len(k), q.shape[1]
    calls.call(name, q.dtype, similarity.compiled_as or 0, *sizes, threads, q, k, skip, *arrays)
