"""Whether distinct observations are kept apart."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import cKDTree

from demix.diagnostics.assumptions.check import Check, around_zero, judge

MARGIN = 0.1
_NEIGHBOURS = 5
_MOST = 4000


def injectivity(x: np.ndarray, z: np.ndarray) -> Check:
    """Compare neighbours by latents ``(M, n)`` with neighbours by observations ``(M, d)``.

    If the latents determine the observations, rows that are near by latents are near by
    observations, too: a row is then the mean of its neighbours by latents about as well as that of
    its neighbours by observations. The statistic is by how much worse, in shares of the variance.
    """
    step = max(1, len(x) // _MOST)
    x, z = np.asarray(x[::step], dtype=np.float64), np.asarray(z[::step], dtype=np.float64)
    spread = x.std(axis=0)
    x = (x / np.where(spread > 0, spread, 1))[:, spread > 0]

    def left(by: np.ndarray) -> np.ndarray:
        _, near = cKDTree(by).query(by, k=_NEIGHBOURS + 1)
        return np.asarray(((x - x[near[:, 1:]].mean(axis=1)) ** 2).mean(axis=1))

    own, best = left(z), left(x)
    shuffled = left(z[np.random.default_rng(0).permutation(len(z))])
    scale = max(float((shuffled - best).mean()), 1e-12)
    statistic = max(0.0, float((own - best).mean()) / scale)
    # Rows share neighbours, so that the error is that of so many times fewer of them.
    error = float((own - best).std()) * math.sqrt((_NEIGHBOURS + 1) / len(x)) / scale
    found = f"Rows that are alike by latents differ in {100 * statistic:.1f} % of the observations"
    return judge(
        "injectivity",
        statistic,
        around_zero(error),
        margin=MARGIN,
        unit="share of the observations that latents leave open",
        good=f"{found}.",
        bad=f"{found}: latents do not keep distinct observations apart.",
        details={
            "own": float(own.mean()),
            "best": float(best.mean()),
            "chance": float(shuffled.mean()),
        },
    )
