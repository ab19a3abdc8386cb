"""One factor read out of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from demix.metrics.blocks import exchangeable
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.readouts import ReadOut, read_outs, split_of


def read_out(
    features: np.ndarray,
    factor: Any,
    kind: str,
    *,
    period: float | None = None,
    permutations: int = 1000,
    seed: int = 0,
) -> ReadOut:
    """Read one factor out, with rows at random in all parts."""
    sampling = exchangeable(len(features), seed)
    known = Factor("the factor", np.asarray(factor), kind, period)
    return read_outs(
        features, [known], split_of(sampling), permutations=permutations, sampling=sampling
    )[0]
