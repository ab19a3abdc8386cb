"""Calls of the compiled kernel with tensors."""

import math
from ctypes import c_double, c_int64, c_void_p

import torch
from torch import Tensor

from demix._support.kernel.build import library

_SUFFIXES = {torch.float32: "f32", torch.float64: "f64"}
_SHARE = 2**19  # multiplications for which a thread is worth waking


def serves(*tensors: Tensor) -> bool:
    """Tell whether there is compiled code for tensors, all of one type and on the processor."""
    dtype = tensors[0].dtype
    fits = all(x.dtype == dtype and x.device.type == "cpu" for x in tensors)
    return fits and dtype in _SUFFIXES and library() is not None


def threads_for(multiplications: int) -> int:
    """Return how many threads are worth waking for a call."""
    return max(1, min(torch.get_num_threads(), multiplications // _SHARE))


def lowest_exponent(dtype: torch.dtype) -> float:
    """Return where exponents are cut off, far from denormal numbers that slow processors down."""
    # What is cut off lies below ``e^-60`` (float32) or ``e^-490`` (float64) of the largest term.
    return 0.69 * math.log(torch.finfo(dtype).tiny)


def call(name: str, dtype: torch.dtype, *arguments: Tensor | int | None) -> None:
    """Call the function for a type; tensors that are made contiguous live until it returns."""
    code = library()
    assert code is not None
    held = [x.contiguous() if torch.is_tensor(x) else x for x in arguments]
    code[f"{name}_{_SUFFIXES[dtype]}"](
        c_double(lowest_exponent(dtype)),
        *(c_int64(x) if isinstance(x, int) else c_void_p(_address(x)) for x in held),
    )


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
