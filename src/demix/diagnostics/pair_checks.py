"""Checks of pairs: the marginal, and the shape, isotropy, independence and reach of the noise."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor

from demix.diagnostics.check import Check, judge, skipped
from demix.diagnostics.model_checks import informative
from demix.diagnostics.paired import Paired, uniform
from demix.distributions.base import SHAPES
from demix.estimators.gain import Prediction, fitted_sharpness, held_out_gain
from demix.losses.contrast import log_probabilities

_DRAWS = 40
_TAIL = 0.95  # beyond this quantile of the noise model lies the tail
_MANY = 20  # with more latents, products of two are left out of the polynomials
_FOLDS = 5
_BATCH = 1024  # positives that are told apart at a time


def pair_checks(pairs: Paired, random: np.random.Generator) -> list[Check]:
    """Check what the theorems need of latents and of their noise."""
    own_scale = pairs.model.scale
    pairs = replace(pairs, model=pairs.fitted(shape=False))
    draws = pairs.simulated(_DRAWS, random)
    return [
        *_marginal(pairs, draws, random),
        _steps(pairs, draws),
        _shape(pairs, draws[: _DRAWS // 2], own_scale),
        _isotropy(pairs, draws),
        _position(pairs, draws[: _DRAWS // 2]),
        _support(pairs, draws),
    ]


def positives_informative(pairs: Paired) -> Check:
    """Tell positives from those of other anchors, under the fitted noise model."""
    model = pairs.fitted(shape=False)

    def predicted(rows: Tensor) -> Prediction:
        keys = (pairs.z[rows] / model.scale, pairs.z_tilde[rows] / model.scale)
        blocks = torch.from_numpy(pairs.blocks)[rows]
        guess = torch.full((len(rows),), -math.log(len(rows)), dtype=torch.float64)
        own = torch.arange(len(rows))
        return Prediction(log_probabilities(*keys, similarity=model.p), own, blocks, guess)

    # The first half says how sharp the model is, the second how much it then knows.
    halves = torch.arange(len(pairs.z)).tensor_split(2)
    first, second = ([predicted(rows) for rows in half.split(_BATCH)] for half in halves)
    return informative("positives", held_out_gain(second, fitted_sharpness(first)))


def _compared(
    name: str,
    statistic: Callable[[Paired], float],
    pairs: Paired,
    draws: list[Paired],
    shown: Callable[[float], float] = float,
) -> Check:
    """Compare a statistic of pairs with that of simulated ones; sentences say it as ``shown``."""
    value = statistic(pairs)
    return judge(name, value, np.array([statistic(draw) for draw in draws]), shown=shown(value))


def _marginal(pairs: Paired, draws: list[Paired], random: np.random.Generator) -> list[Check]:
    """Compare means of polynomials with those of uniform latents: Neyman's smooth test."""
    # Half of the squared norm of standardised means is, to second order, the divergence in nats.
    if not pairs.uniform:
        return [skipped("marginal", "Nothing is assumed of the marginal.")]
    if not pairs.model.space.bounded:
        return [skipped("marginal", "In an unbounded space there is no uniform marginal to test.")]
    reference = uniform(pairs.model.space, 50_000, random).numpy()
    mean, whiten = _standardiser(_polynomials(reference))

    def bits(p: Paired) -> float:
        latents = p.z if p.walk is None else p.walk
        found = (_polynomials(latents.numpy()).mean(axis=0) - mean) @ whiten
        return float(found @ found / 2 / math.log(2))

    check = _compared("marginal", bits, pairs, draws)
    if pairs.walk is None:
        return [check]
    # Whether a series comes round often enough for its marginal to be seen.
    return [check, judge("visits", np.quantile(check.null, 0.95))]


def _steps(pairs: Paired, draws: list[Paired]) -> Check:
    """Compare how often values of a latent come; a mixing that folds it leaves a step."""
    space = pairs.model.space
    if not (pairs.uniform and space.bounded and space.separable):
        return skipped("steps", "No latent has values that come equally often.")

    def share(p: Paired) -> float:
        z = np.sort((p.z if p.walk is None else p.walk).numpy(), axis=0)
        even = (np.arange(len(z)) + 0.5)[:, None] / len(z)
        return float(np.abs(z / p.model.space.high.numpy() - even).max())  # type: ignore[attr-defined]

    return _compared("steps", share, pairs, draws)


def _shape(pairs: Paired, draws: list[Paired], own_scale: float) -> Check:
    """Compare the fitted shape with the assumed one."""
    model, free = pairs.model, pairs.fitted(shape=True)
    spread = np.array([math.log(draw.fitted(shape=True).p / model.p) for draw in draws])
    centre = float(np.median(spread))  # several lags make heavier tails
    spread = spread - centre
    low, high = (free.p * math.exp(-q) for q in np.quantile(spread, [0.975, 0.025]))
    scales = np.array([draw.fitted(shape=False).scale for draw in draws])
    about: dict[str, Any] = {"p": free.p, "p_low": low, "p_high": high, "assumed_p": model.p}
    name, of = "scale", lambda scale: scale
    if model.space.spherical:
        name, of = "kappa", lambda scale: 2 / scale**2
    error = np.quantile(np.log(scales / model.scale), [0.025, 0.975])
    ends = sorted(float(of(model.scale * math.exp(e))) for e in error)
    about |= {name: float(of(model.scale)), f"{name}_of_model": float(of(own_scale))}
    about |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    end = " or beyond" if not SHAPES[0] * 1.01 < free.p < SHAPES[1] / 1.01 else ""
    apart = abs(math.log(free.p / model.p) - centre)
    return judge("shape", apart, np.abs(spread), details=about, end=end)


def _isotropy(pairs: Paired, draws: list[Paired]) -> Check:
    """Compare the noise in all directions."""

    def ratio(p: Paired) -> float:
        noise = p.residuals()
        values = np.linalg.eigvalsh(noise.T @ noise / len(noise))
        return float(np.log(values[-1] / values[0].clip(1e-12 * values[-1])) / 2)

    if not pairs.isotropic:
        return skipped("isotropy", "The noise may differ between directions.")
    if pairs.z.shape[1] < 2:
        return skipped("isotropy", "One latent has no directions to compare.")
    return _compared("isotropy", ratio, pairs, draws, math.exp)


def _position(pairs: Paired, draws: list[Paired]) -> Check:
    """Test whether the noise depends on the place of the anchor."""

    def r2(p: Paired) -> float:
        size = special.ndtri(np.clip(p.quantiles(), 1e-4, 1 - 1e-4)).mean(axis=1)
        targets = np.column_stack([size, p.residuals()])
        return float(_explained(_polynomials(p.z.numpy()), targets, p.blocks).clip(0).max())

    return _compared("position", r2, pairs, draws)


def _support(pairs: Paired, draws: list[Paired]) -> Check:
    """Test whether positives reach as far as the noise model lets them."""

    def missing(p: Paired) -> float:
        sizes = p.quantiles()
        beyond = float((sizes > _TAIL).sum()) + 0.5
        return max(0.0, math.log2((1 - _TAIL) * sizes.size / beyond))

    return _compared("support", missing, pairs, draws, lambda value: 100 * 2**-value)


def _polynomials(z: np.ndarray) -> np.ndarray:
    """Return monomials ``(M, k)`` of latents ``(M, n)``: up to degree 4, and products of two."""
    powers = [z, z**2, z**3, z**4]
    if z.shape[1] <= _MANY:
        first, second = np.triu_indices(z.shape[1], k=1)
        powers.append(z[:, first] * z[:, second])
    return np.concatenate(powers, axis=1)


def _standardiser(reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean ``(k,)`` of features and the matrix ``(k, r)`` that whitens them."""
    mean = reference.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(reference.T))
    kept = values > 1e-6 * values.max()  # on a sphere squares add up to a constant
    return mean, vectors[:, kept] / np.sqrt(values[kept])


def _explained(features: np.ndarray, targets: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the held-out R² ``(t,)`` of each target ``(M, t)`` by ridge regression."""
    mean, whiten = _standardiser(features)
    design = (features - mean) @ whiten
    _, place = np.unique(blocks, return_inverse=True)  # they are not split between folds
    fold = place * _FOLDS // (place.max() + 1) if place.max() >= _FOLDS else place % 2
    left = np.zeros_like(targets)
    level = np.zeros_like(targets)
    for number in np.unique(fold):
        own = fold == number
        x, y = design[~own], targets[~own]
        centre = y.mean(axis=0)
        gram = x.T @ x + np.eye(x.shape[1])
        left[own] = targets[own] - centre - design[own] @ np.linalg.solve(gram, x.T @ (y - centre))
        level[own] = targets[own] - centre
    return np.asarray(1 - (left**2).sum(axis=0) / (level**2).sum(axis=0).clip(1e-30))
