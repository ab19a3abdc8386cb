"""The log-sum-exp over all pairs in compiled code, for processors with a C compiler at hand."""

from ctypes import c_double, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from demix.losses.kernel.build import library
from demix.losses.similarities import PairBlock
from demix.losses.tiles import finite, lowest_exponent

_SUFFIXES = {torch.float32: "f32", torch.float64: "f64"}
# Multiplications for which a thread is worth waking.
_SHARE = 2**19


def serves(block: PairBlock) -> bool:
    """Tell whether there is compiled code for these arrays."""
    q, k, similarity, _ = block
    known = q.dtype in _SUFFIXES and q.dtype == k.dtype and similarity.compiled_as is not None
    return known and q.device.type == k.device.type == "cpu" and library() is not None


def logsumexp(block: PairBlock, columns: bool) -> tuple[Tensor, Tensor | None]:
    """Do what the function of this name in ``tiles`` does."""
    q, k, threads = block.q, block.k, _threads(block)
    rows = q.new_empty(len(q))
    # Each thread sums over its own rows.
    sums = k.new_full((threads, len(k)), -torch.inf) if columns else None
    _call("logsumexp", block, threads, rows, sums)
    return rows, None if sums is None else sums.logsumexp(dim=0)


def gradient(
    block: PairBlock, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Do what the function of this name in ``tiles`` does."""
    q, k, threads = block.q, block.k, _threads(block)
    # Threads divide the longer side; each has gradients of its own for the shorter one only.
    by_keys = len(k) > len(q)
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
    return max(1, min(torch.get_num_threads(), len(block.k) * block.q.numel() // _SHARE))


def _call(name: str, block: PairBlock, threads: int, *arrays: Tensor | bool | None) -> None:
    """Call the function for the arrays' type; arrays that are made contiguous live until then."""
    code, (q, k, similarity, skip) = library(), block
    assert code is not None
    held = [x.contiguous() if torch.is_tensor(x) else x for x in (q, k, skip, *arrays)]
    addresses = [x.data_ptr() if torch.is_tensor(x) else x for x in held]
    code[f"{name}_{_SUFFIXES[q.dtype]}"](
        c_int(similarity.compiled_as or 0),
        *(c_int64(size) for size in (len(q), len(k), q.shape[1])),
        c_int(threads),
        c_double(lowest_exponent(q.dtype)),
        *(c_int(x) if isinstance(x, bool) else c_void_p(x) for x in addresses),
    )
