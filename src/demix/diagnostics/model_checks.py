"""Checks of every model: its gain, other fits to the same data, and what it leaves open of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from demix._support.errors import DemixError
from demix.diagnostics.check import MARGINS, Check, around_zero, judge, skipped
from demix.encoders.encoder import Encoder
from demix.estimators.fitting import HeldOut
from demix.estimators.gain import Gain, block_mean, own_information
from demix.metrics.regression import affine_r2, mean_correlation, orthogonal_r2
from demix.spaces.base import Space
from demix.theory.setting import UP_TO, EquivalenceName

# A 95 % interval is so many standard errors wide.
_WIDTH = 2 * 1.96

SCORES: dict[EquivalenceName, Callable[..., Any]] = {
    "orthogonal": orthogonal_r2,
    "affine": affine_r2,
    "linear": affine_r2,
    "permutation": mean_correlation,
}
"""The score that is 1 for latents which are the same up to each equivalence."""

# Rows that are looked at.
ROWS = 3000
# Fits again take no more steps, whatever the recipe of a loaded model says.
_MOST_STEPS = 50_000
# Neighbours of a row, for each latent; with more latents than `_MANY` their mean has to do.
_NEIGHBOURS, _MANY = 4, 20
# Directions of the observations that count: those of nearly all of the variance, at most so many.
_VARIANCE, _DIRECTIONS = 0.999, 50
# A residual of local lines falls with rows to the power -_RATE / dimension, noise does not: 4 for
# smooth mixings, 3 where they have kinks.
_RATE = 3.0
# Rows after a row whose latents are compared with its own.
LAGS = 3
_DRAWS = 100


@dataclass(frozen=True, eq=False)
class Refits:
    """The estimator, and others like it on the same data; None where a fit is not possible."""

    own: Any
    half: Any
    fewer: Any
    more: Any


def refit(demixer: Any, fit: Callable[[Any, bool], Any], callback: Callable[[str], None]) -> Refits:
    """Fit again to half of the rows, and to all with one latent fewer and more."""
    # ``fit(demixer, half)`` fits to half of the rows or to all.

    def again(stage: str, *, half: bool = False, **changes: Any) -> Any:
        callback(stage)
        if demixer.recipe is not None:
            steps = min(demixer.recipe.steps, _MOST_STEPS)
            changes["recipe"] = replace(demixer.recipe, steps=steps)
        try:
            return fit(demixer.settled().set_params(**changes), half)
        except DemixError:
            return None  # e.g. no sphere in one dimension, or a space of fixed dimension

    n, seed = int(demixer.n_latents), int(demixer._seed())
    return Refits(
        demixer,
        again("half of the rows", half=True, random_state=(seed + 1) % 2**32),
        again("one latent fewer", n_latents=n - 1, random_state=seed) if n > 1 else None,
        again("one latent more", n_latents=n + 1, random_state=seed),
    )


def informative(targets: str, gain: Gain) -> Check:
    """Check that the information about held-out targets is above zero."""
    # No information at all is as bad as less.
    below = -gain.low if gain.above_zero else max(-gain.low, 1e-9)
    return judge(f"{targets} informative", below, details=gain.to_dict(), gain=gain)


def stability(refits: Refits, x: Tensor, equivalence: EquivalenceName) -> Check:
    """Compare with a fit to half of the rows from another seed, up to the theorem's equivalence."""
    # What half of the rows change is about what all of them leave uncertain: an estimate from half
    # of the data is off by twice the variance, of which it shares one half with that from all.
    if refits.half is None:
        return skipped("stability", "The model could not be fitted again.")
    first, second = (latents_of(d.encoder_, x) for d in (refits.own, refits.half))
    score = SCORES[equivalence](second, first)
    return judge(
        "stability",
        1 - float(score),
        around_zero((score.high - score.low) / _WIDTH),
        details={"score": float(score), "chance": score.baseline},
        same=100 * score,
        up_to=UP_TO[equivalence],
    )


def dimension(refits: Refits, source: Any) -> list[Check]:
    """Test whether one latent more predicts held-out samples better, or one fewer as well."""
    few, many = "too few latents", "too many latents"
    if not hasattr(refits.own, "objective_"):
        why = "Model folders do not keep the prototypes of instances; check a model after its fit."
        return [skipped(few, why), skipped(many, why)]

    def compared(name: str, factors: str) -> Check:
        other = getattr(refits, factors)
        if other is None:
            return skipped(name, f"The model could not be fitted with one latent {factors}.")
        better, worse = (other, refits.own) if name == few else (refits.own, other)
        held = HeldOut(source, ("test",), better._batch())
        (known, blocks), (less, _) = (
            own_information(held.predictions(d.encoder_, d.objective_), d.gain_.sharpness)
            for d in (better, worse)
        )
        bits, reach = block_mean((known - less) / math.log(2), blocks)
        statistic = bits if name == few else 2 * MARGINS[many] - bits
        details = {"bits": bits, "low": bits - reach, "high": bits + reach}
        return judge(name, statistic, around_zero(2 * reach / _WIDTH), details=details)

    return [compared(few, "more"), compared(many, "fewer")]


@torch.no_grad()
def latents_of(encoder: Encoder, x: Tensor) -> np.ndarray:
    """Return the latents of rows in memory, in float64."""
    encoder.eval()
    parts = [encoder(part).double().cpu().numpy() for part in x.split(4096)]
    return np.concatenate(parts)


def injectivity(x: np.ndarray, z: np.ndarray, space: Space) -> Check:
    r"""Ask how much of latents ``(M, n)`` is noise, if what they leave open of ``x`` is noise.

    Where the mixing is injective, latents determine the observations. Lines through neighbours by
    latents predict each row; what they miss, extrapolated to very many rows, has the variance
    :math:`r`, where each of :math:`D` directions of the observations has the variance 1. Noise that
    is alike in all directions would make up :math:`r / (D - m)` of each, and so the share
    :math:`m / D` of that along the :math:`m` dimensions of the latents.
    """
    step = max(1, len(x) // ROWS)
    x, z = np.asarray(x[::step], dtype=np.float64), np.asarray(z[::step], dtype=np.float64)
    directions = _directions(x)
    if directions.shape[1] == 0:
        return skipped("injectivity", "The observations do not vary.")
    total = float(directions.var(axis=0).sum())
    dim = sum(part.dim - part.spherical for part in space.parts)
    left = _left_open(z, directions)
    fewer = [_left_open(z[start::2], directions[start::2]) for start in (0, 1)]
    growth = 2 ** (_RATE / max(dim, 1))
    left_open = (growth * left.mean() - np.concatenate(fewer).mean()) / (growth - 1)
    scale = dim / max(directions.shape[1] - dim, 1) / total
    statistic = max(0.0, float(left_open) * scale)
    error = float(left.std()) * math.sqrt((1 + dim) / len(x)) * scale
    share = 100 * max(0.0, left_open) / total
    details = {"left_open": float(share) / 100, "directions": directions.shape[1]}
    return judge("injectivity", statistic, around_zero(error), details=details, share=share)


def observation_noise(walk: np.ndarray) -> Check:
    r"""Ask how much of the latents of a series changes from row to row without a memory.

    ``walk (W, 1 + LAGS, n)`` are the latents of rows and of those that follow. Of white noise in
    the observations nothing is left after one row, while factors move on: the autocorrelation
    :math:`\rho_k = a\, e^{-k / \tau}` falls short of 1 as :math:`k \to 0`, by the share of the
    noise. Its logarithm is extrapolated along a line and along a parabola, of which the one that
    leaves less noise counts.
    """
    z = walk - walk[:, 0].mean(axis=0)
    products = np.einsum("wn,wkn->wk", z[:, 0], z)
    if not (products.mean(axis=0) > 0.05 * products[:, 0].mean()).all():
        why = "The series changes too fast for its noise to be seen."
        return skipped("observation noise", why)

    def share(products: np.ndarray) -> float:
        first, second, third = np.log((products[1:] / products[0]).clip(1e-3))
        return 1 - math.exp(min(0.0, max(2 * first - second, 3 * first - 3 * second + third)))

    random = np.random.default_rng(0)
    statistic = share(products.mean(axis=0))
    blocks = np.array_split(products, min(50, len(products)))
    sums = np.array([block.sum(axis=0) for block in blocks])
    draws = [
        share(sums[random.integers(len(sums), size=len(sums))].sum(axis=0)) for _ in range(_DRAWS)
    ]
    return judge("observation noise", statistic, around_zero(float(np.std(draws))))


def linear_views(x: np.ndarray, z: np.ndarray) -> Check:
    """Ask whether latents ``(M, n)`` of instances are more than a linear map of ``x (M, d)``."""
    # Views that add noise to the observations surround the observations themselves. These are what
    # is then recovered, and nothing behind them.
    if x.shape[1] >= len(x) / 4:
        return skipped("views", "There are too many numbers in a row to compare them with.")
    return judge("views", affine_r2(x, z))


def _directions(x: np.ndarray) -> np.ndarray:
    """Return principal components ``(M, D)`` of standardised columns, in their own units."""
    spread = x.std(axis=0)
    x = ((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1))[:, spread > 0]
    if x.shape[1] == 0:
        return x
    _, values, axes = np.linalg.svd(x, full_matrices=False)
    share = (values**2).cumsum() / (values**2).sum()
    kept = min(int(np.searchsorted(share, _VARIANCE)) + 1, _DIRECTIONS)
    return np.asarray(x @ axes[:kept].T)


def _left_open(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the squared error ``(M,)`` of lines through the neighbours of each row, without it."""
    n = z.shape[1]
    count = min(_NEIGHBOURS * (n + 1), len(z) - 1)
    _, near = cKDTree(z).query(z, k=count + 1)
    found = np.empty(len(z))
    for rows in np.array_split(np.arange(len(z)), max(1, len(z) // 500)):
        own = near[rows, 1:]
        design = np.ones((len(rows), count, 1))
        if n <= _MANY:
            design = np.concatenate([design, z[own] - z[rows, None]], axis=2)
        gram = np.einsum("mki,mkj->mij", design, design)
        size = gram.shape[1]
        gram += 1e-6 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(size)
        first = np.zeros((len(rows), size, 1))
        first[:, 0] = 1
        weights = np.einsum("mki,mi->mk", design, np.linalg.solve(gram, first)[..., 0])
        error = x[rows] - np.einsum("mk,mkd->md", weights, x[own])
        # Noise of the neighbours adds to that of the row.
        found[rows] = (error**2).sum(axis=1) / (1 + (weights**2).sum(axis=1))
    return found
