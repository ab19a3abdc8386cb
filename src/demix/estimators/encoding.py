"""Latents of rows, block by block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from demix.data import Data
from demix.encoders import Encoder
from demix.errors import DemixError

# Numbers of a block: few enough to stay in the processor's caches on the way through the body.
_BLOCK = 2**20


@torch.no_grad()
def encode(
    encoder: Encoder,
    data: Data,
    out: np.ndarray | None = None,
    *,
    report: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Return the latents of all rows, in the memory of one block beside them.

    Parameters
    ----------
    encoder : Encoder
        The model.
    data : Data
        The rows.
    out : ndarray (N, n) of float32, optional
        Where to put them, e.g. a memory map.
    report : callable, optional
        ``report(rows)`` after each block, with how many rows are done.

    Examples
    --------
    >>> from demix import Encoder, Sphere, as_data
    >>> from demix.estimators.encoding import encode
    >>> encode(Encoder(2, Sphere(3)), as_data([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 3)
    """
    width = max(1, int(np.prod(data.shape[1:])))
    device = next(encoder.parameters()).device
    encoder.eval()
    if out is None:
        out = np.empty((len(data), encoder.space.dim), dtype=np.float32)
    for start, rows in data.blocks(max(1, min(16_384, _BLOCK // width))):
        if not bool(torch.isfinite(rows).all()):
            raise DemixError(
                f"Expected finite numbers, but {data.source} holds NaN, infinity or numbers beyond "
                f"float32 in rows {start}..{start + len(rows) - 1}; remove or impute them."
            )
        out[start : start + len(rows)] = encoder(rows.to(device)).float().cpu().numpy()
        if report is not None:
            report(start + len(rows))
    return out
