"""What a step costs on many ranks: compute, exchange and memory, from a few numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

_FLOAT = 4
"""Bytes of a number."""


@dataclass(frozen=True)
class Costs:
    r"""What a device and the way to the next one cost, in seconds and bytes.

    With :math:`n = B / R` of :math:`B` pairs on each of :math:`R` ranks a step takes

    .. math:: t_0 + B\,\mathrm{draw} + n\,\mathrm{encode} + n B\,\mathrm{pair}

    and its exchange, made of hops that take ``latency`` and ``byte`` for each byte.

    Attributes
    ----------
    dim : int
        Latents.
    fixed, draw, encode, pair : float
        Seconds of a step, for each pair that is drawn, that is encoded, and for each query with
        each key, forward and backward.
    latency, byte : float
        Seconds of a hop, and for each byte of it.
    gradients : int
        Bytes of the encoder's gradients.
    copies : float
        Arrays of the size of all keys that a rank holds at once.
    """

    dim: int
    fixed: float
    draw: float
    encode: float
    pair: float
    latency: float
    byte: float
    gradients: int
    copies: float

    def compute(self, batch: int, ranks: int) -> float:
        """Return the seconds of a step without any exchange."""
        own = batch / ranks
        return self.fixed + batch * self.draw + own * (self.encode + batch * self.pair)

    def gather(self, batch: int, ranks: int) -> float:
        """Return the seconds that gathered keys add to a step.

        A gather and a scatter of the keys, and three sums of a number per key over ranks.
        """
        keys = batch * _FLOAT * self.dim
        return self._spread(keys, ranks) * 2 + self._sum(batch * _FLOAT, ranks) * 3

    def average(self, ranks: int) -> float:
        """Return the seconds of averaging the gradients, and of a number for the loss."""
        return self._sum(self.gradients, ranks) + self._sum(_FLOAT, ranks)

    def _spread(self, size: float, ranks: int) -> float:
        """Return the seconds in which ranks with a part each get all, twice as much at a time."""
        hops = math.ceil(math.log2(ranks))
        return hops * self.latency + (ranks - 1) / ranks * size * self.byte

    def _sum(self, size: float, ranks: int) -> float:
        """Return the seconds of a sum over ranks: parts are summed by one each, then spread."""
        return 2 * self._spread(size, ranks)

    def gather_bytes(self, batch: int) -> float:
        """Return the bytes that the loss takes on a rank."""
        return self.copies * batch * self.dim * _FLOAT

    def on(self, times_faster: float, latency: float, bandwidth: float) -> Costs:
        """Return the costs on devices that are so much faster, with another network."""
        names = ("fixed", "draw", "encode", "pair")
        faster = {name: getattr(self, name) / times_faster for name in names}
        return replace(self, **faster, latency=latency, byte=1 / bandwidth)

    def predicted(self, batch: int, ranks: int) -> dict[str, float]:
        """Return everything about a step on so many ranks, and its share of perfect scaling."""
        compute, average = self.compute(batch, ranks), self.average(ranks)
        gather, one = self.gather(batch, ranks), self.compute(batch, 1)
        return {
            "ranks": ranks,
            "compute": compute,
            "average": average,
            "gather": gather,
            "efficiency": one / ranks / (compute + average + gather),
            "bytes": self.gather_bytes(batch),
        }


def fitted(
    dim: int,
    *,
    steps: Mapping[int, float],
    draw: tuple[int, float],
    losses: Mapping[int, float],
    hops: Mapping[int, float],
    gradients: int,
    copies: float,
) -> Costs:
    """Return the costs that measurements of one rank, and of a hop, are explained by.

    Parameters
    ----------
    dim : int
        Latents.
    steps : mapping of int to float
        Seconds of a step on one rank, by batch.
    draw : (int, float)
        A batch, and the seconds to draw it.
    losses : mapping of int to float
        Seconds of the loss and its gradients on one rank, by batch.
    hops : mapping of int to float
        Seconds of a hop by bytes.
    gradients : int
        Bytes of the encoder's gradients.
    copies : float
        Arrays of the size of all keys that a rank holds at once.

    Examples
    --------
    >>> from benchmarks.rank_model import fitted
    >>> costs = fitted(
    ...     2,
    ...     steps={b: 1e-3 + 3e-6 * b + 1e-9 * b * b for b in (100, 1000, 10_000)},
    ...     draw=(1000, 1e-3),
    ...     losses={b: 1e-4 + 1e-9 * b * b for b in (10, 10_000)},
    ...     hops={m: 1e-4 + 1e-9 * m for m in (100, 10**6)},
    ...     gradients=1000,
    ...     copies=5.0,
    ... )
    >>> round(1e6 * costs.encode, 6), round(1e9 * costs.pair, 6), round(1e3 * costs.latency, 6)
    (2.0, 1.0, 0.1)
    """
    _, pair = _line({batch**2: seconds for batch, seconds in losses.items()})
    fixed, slope = _line({batch: seconds - pair * batch**2 for batch, seconds in steps.items()})
    latency, byte = _line(hops)
    each = draw[1] / draw[0]
    return Costs(
        dim,
        fixed=fixed,
        draw=each,
        encode=max(0.0, slope - each),
        pair=pair,
        latency=latency,
        byte=byte,
        gradients=gradients,
        copies=copies,
    )


def _line(points: Mapping[int, float]) -> tuple[float, float]:
    """Return offset and slope, neither below zero, with the smallest relative errors."""
    x, y = np.array(list(points), dtype=float), np.array(list(points.values()), dtype=float)
    y = np.maximum(y, 1e-12)
    (offset, slope), _ = nnls(np.stack([1 / y, x / y], axis=1), np.ones_like(y))
    return float(offset), float(slope)


def as_data(costs: Costs) -> dict[str, Any]:
    """Return the costs as plain data."""
    return dict(vars(costs))
