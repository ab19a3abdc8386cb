"""Latents of rows, block by block."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from demix._support.errors import DemixError
from demix.data.data import Data
from demix.encoders.encoder import Encoder

_BLOCK = 2**20  # numbers: few enough to stay in the processor's caches


def encode(
    encoder: Encoder,
    data: Data,
    out: np.ndarray | None = None,
    *,
    callback: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Return the latents ``(N, n)`` of all rows in float32, block by block.

    They are written to ``out`` if it is given, e.g. a memory map. After each block,
    ``callback(rows)`` is called with the number of rows that are done.
    """
    if out is None:
        out = np.empty((len(data), encoder.space.dim), dtype=np.float32)
    for start, (latents,) in encoded([encoder], data):
        out[start : start + len(latents)] = latents
        if callback is not None:
            callback(start + len(latents))
    return out


def encoded(encoders: Sequence[Encoder], data: Data) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield the number of the first row of each block, and its latents by each encoder."""
    devices = [next(encoder.parameters()).device for encoder in encoders]
    for encoder in encoders:
        encoder.eval()
    data = data.precisely(any(encoder.precise for encoder in encoders))
    for start, rows in data.blocks(block_rows(data)):
        if not bool(torch.isfinite(rows).all()):
            raise DemixError(
                f"Expected finite numbers, but {data.source} holds NaN, infinity or numbers beyond "
                f"float32 in rows {start}..{start + len(rows) - 1}; remove or impute them."
            )
        # Not around the loop: the consumer of the blocks would compute without gradients, too.
        with torch.no_grad():
            found = [f(rows.to(device)) for f, device in zip(encoders, devices, strict=True)]
        # Outputs that are finite, but not their norm, become the centre of a sphere.
        if not all(map(Encoder.reaches, encoders, found)):
            raise DemixError(
                f"The latents of rows {start}..{start + len(rows) - 1} of {data.source} are not "
                "finite; remove rows that lie far from those the model was fitted to."
            )
        yield start, [latents.float().cpu().numpy() for latents in found]


def block_rows(data: Data) -> int:
    """Return how many rows are encoded at a time."""
    return max(1, min(16_384, _BLOCK // max(1, int(np.prod(data.shape[1:])))))
