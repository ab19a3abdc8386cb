"""Checks of every model: injectivity, and what other fits to the same data give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from sklearn.base import clone
from torch import Tensor

from demix._support.errors import DemixError
from demix.diagnostics.check import Check, around_zero, judge, skipped
from demix.encoders.encoder import Encoder
from demix.estimators.fitting import held_out_likelihoods
from demix.estimators.gain import Gain, held_out_gain
from demix.metrics.correlation import mean_correlation
from demix.metrics.regression import affine_r2, orthogonal_r2
from demix.theory.setting import UP_TO, EquivalenceName

MARGINS = {
    "injectivity": 0.1,
    "stability": 0.05,
    "too few latents": 0.15,
    "too many latents": 0.15,
}
"""What the error of learning adds to each statistic; see the calibration."""

_NEIGHBOURS, _ROWS = 5, 4000
# A 95 % interval is so many standard errors wide.
_WIDTH = 2 * 1.96

SCORES: dict[EquivalenceName, Callable[..., Any]] = {
    "orthogonal": orthogonal_r2,
    "affine": affine_r2,
    "linear": affine_r2,
    "permutation": mean_correlation,
}
"""The score that is 1 for latents which are the same up to each equivalence."""

Fit = Callable[[Any], Any]
"""Fits an estimator to the data of the check-up and returns it."""


@dataclass(frozen=True, eq=False)
class Refits:
    """The estimator, and others like it on the same data; None where there is none."""

    own: Any
    other_seed: Any
    fewer: Any
    more: Any


def refit(demixer: Any, fit: Fit, say: Callable[[str], None]) -> Refits:
    """Fit again with another seed, and with one latent fewer and more."""

    def again(what: str, **changes: Any) -> Any:
        say(what)
        try:
            return fit(clone(demixer).set_params(**changes))
        except DemixError:
            return None  # e.g. no sphere in one dimension, or a space that has its own

    n, seed = int(demixer.n_latents), int(demixer._seed())
    return Refits(
        demixer,
        again("another seed", random_state=seed + 1),
        again("one latent fewer", n_latents=n - 1, random_state=seed) if n > 1 else None,
        again("one latent more", n_latents=n + 1, random_state=seed),
    )


def stability(refits: Refits, x: Tensor, equivalence: EquivalenceName) -> Check:
    """Compare two seeds on held-out rows, up to the theorem's equivalence."""
    if refits.other_seed is None:
        return skipped("stability", "The model could not be fitted again.")
    first, second = (latents_of(d.encoder_, x) for d in (refits.own, refits.other_seed))
    score = SCORES[equivalence](second, first)
    found = f"A second seed gives {100 * score:.1f} % of the same latents"
    up_to = UP_TO[equivalence]
    return judge(
        "stability",
        1 - float(score),
        _null(score),
        margin=MARGINS["stability"],
        unit=f"1 - score between seeds, up to {up_to}",
        good=f"{found}, up to {up_to}.",
        bad=f"{found}, up to {up_to}: the latents depend on the seed.",
        details={"score": float(score), "chance": score.baseline},
    )


def dimension(refits: Refits, source: Any) -> list[Check]:
    """See whether one latent more tells more of held-out samples, or one fewer as much."""
    checks = []
    few, many = "too few latents", "too many latents"
    if not hasattr(refits.own, "objective_"):
        why = "Model folders do not keep the prototypes of instances; check a model after its fit."
        return [skipped(few, why), skipped(many, why)]
    if refits.more is None:
        checks.append(skipped(few, "The model could not be fitted with one latent more."))
    else:
        more = _difference(refits.more, refits.own, source)
        checks.append(
            judge(
                few,
                more.bits,
                _null(more),
                margin=MARGINS[few],
                unit="bits by one latent more",
                good=f"One latent more would add {more}.",
                bad=f"One latent more adds {more}: there are more factors than latents.",
                details={"bits": more.bits, "low": more.low, "high": more.high},
            )
        )
    if refits.fewer is None:
        checks.append(skipped(many, "The model could not be fitted with one latent fewer."))
    else:
        last = _difference(refits.own, refits.fewer, source)
        checks.append(
            judge(
                many,
                2 * MARGINS[many] - last.bits,
                _null(last),
                margin=MARGINS[many],
                unit="bits that are missing of what a latent should add",
                good=f"The last latent adds {last}.",
                bad=f"The last latent adds only {last}: there are fewer factors than latents.",
                details={"bits": last.bits, "low": last.low, "high": last.high},
            )
        )
    return checks


def _null(found: Any) -> np.ndarray:
    """Return what chance gives where the truth is 0, from the 95 % interval of what was found."""
    return around_zero((found.high - found.low) / _WIDTH)


@torch.no_grad()
def latents_of(encoder: Encoder, x: Tensor) -> np.ndarray:
    """Return the latents of rows in memory, in float64."""
    encoder.eval()
    parts = [encoder(part).double().cpu().numpy() for part in x.split(4096)]
    return np.concatenate(parts)


def _difference(first: Any, second: Any, source: Any) -> Gain:
    """Return by how many bits one model knows held-out samples better than another."""
    told = [
        held_out_likelihoods(d.encoder_, d.objective_, source, d._batch(), parts=("test",))
        for d in (first, second)
    ]
    return held_out_gain(told[0][0], told[1][0], told[0][2])


def injectivity(x: np.ndarray, z: np.ndarray) -> Check:
    """Compare neighbours by latents ``(M, n)`` with neighbours by observations ``(M, d)``.

    If the latents determine the observations, rows that are near by latents are near by
    observations, too: a row is then the mean of its neighbours by latents about as well as that of
    its neighbours by observations. The statistic is by how much worse, in shares of the variance.
    """
    step = max(1, len(x) // _ROWS)
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
        margin=MARGINS["injectivity"],
        unit="share of the observations that latents leave open",
        good=f"{found}.",
        bad=f"{found}: latents do not keep distinct observations apart.",
        details={
            "own": float(own.mean()),
            "best": float(best.mean()),
            "chance": float(shuffled.mean()),
        },
    )
