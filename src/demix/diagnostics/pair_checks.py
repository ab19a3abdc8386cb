"""Checks of pairs: the marginal, and the shape, isotropy, independence and reach of the noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from demix.diagnostics.check import Check, judge, skipped
from demix.diagnostics.laws import SHAPES, Law, SphereLaw
from demix.diagnostics.paired import Paired

_DRAWS = 40
# Products of two latents are left out beyond so many latents.
_MANY = 20
_FOLDS = 5
# Beyond this quantile of the assumed law lies the tail.
_TAIL = 0.95

MARGINS = {
    "marginal": 0.15,
    "shape": 0.2,
    "isotropy": 0.2,
    "position": 0.05,
    "support": 0.5,
}
"""What the error of learning adds to each statistic; see the calibration."""


def pair_checks(pairs: Paired, random: np.random.Generator) -> list[Check]:
    """Check what the theorems ask of latents and of their noise."""
    law = pairs.law.fitted(pairs.z, pairs.z_tilde, shape=False)
    draws = [pairs.simulated(law, random) for _ in range(_DRAWS)]
    return [
        _marginal(pairs, law, draws, random),
        _shape(pairs, law, draws),
        _isotropy(pairs, law, draws),
        _position(pairs, law, draws),
        _support(pairs, law, draws),
    ]


def _marginal(pairs: Paired, law: Law, draws: list[Paired], random: np.random.Generator) -> Check:
    """Compare means of polynomials with those of a uniform law: Neyman's smooth test.

    Half of the squared norm of their standardised means is, to second order, the divergence from
    uniform in nats.
    """
    reference = law.uniform(50_000, random)
    if reference is None:
        return skipped("marginal", "In an unbounded space there is no uniform marginal to test.")
    mean, whiten = _standardiser(_polynomials(reference))

    def bits(z: np.ndarray) -> float:
        found = (_polynomials(z).mean(axis=0) - mean) @ whiten
        return float(found @ found / 2 / math.log(2))

    statistic, null = bits(pairs.z), np.array([bits(draw.z) for draw in draws])
    found = f"Latents differ from uniform by {statistic:.3f} bits"
    return judge(
        "marginal",
        statistic,
        null,
        margin=MARGINS["marginal"],
        unit="bits from uniform",
        good=f"{found}, no more than chance and learning bring.",
        bad=f"{found}: some regions of the space are visited more often than others.",
    )


def _shape(pairs: Paired, law: Law, draws: list[Paired]) -> Check:
    """Compare the fitted shape with the assumed one."""
    free = law.fitted(pairs.z, pairs.z_tilde, shape=True)
    spread = np.array(
        [math.log(law.fitted(d.z, d.z_tilde, shape=True).p / law.p) for d in draws[: _DRAWS // 2]]
    )
    low, high = (free.p * math.exp(-q) for q in np.quantile(spread, [0.975, 0.025]))
    scales = np.array([law.fitted(d.z, d.z_tilde, shape=False).scale for d in draws[: _DRAWS // 2]])
    about: dict[str, Any] = {"p": free.p, "p_low": low, "p_high": high, "assumed_p": law.p}
    name, of = "scale", lambda scale: scale
    if isinstance(law, SphereLaw):
        name, of = "kappa", lambda scale: 2 / scale**2
    error = np.quantile(np.log(scales / law.scale), [0.025, 0.975])
    ends = sorted(float(of(law.scale * math.exp(e))) for e in error)
    about |= {
        name: float(of(law.scale)),
        f"{name}_low": ends[0],
        f"{name}_high": ends[1],
        f"{name}_of_model": float(of(pairs.law.scale)),
    }
    end = " or beyond" if not SHAPES[0] * 1.01 < free.p < SHAPES[1] / 1.01 else ""
    found = f"The noise has the shape p = {free.p:.2f}{end} ({low:.2f} to {high:.2f})"
    return judge(
        "shape",
        abs(math.log(free.p / law.p)),
        np.abs(spread),
        margin=MARGINS["shape"],
        unit="|log p / assumed p|",
        good=f"{found}; {law.p:g} was assumed.",
        bad=f"{found}, but {law.p:g} was assumed.",
        details=about,
    )


def _isotropy(pairs: Paired, law: Law, draws: list[Paired]) -> Check:
    """Compare the noise in all directions."""

    def ratio(p: Paired) -> float:
        noise = law.noise(p.z, p.z_tilde)
        values = np.linalg.eigvalsh(noise.T @ noise / len(noise))
        return float(np.log(values[-1] / values[0].clip(1e-12 * values[-1])) / 2)

    if pairs.z.shape[1] < 2:
        return skipped("isotropy", "One latent has no directions to compare.")
    statistic = ratio(pairs)
    times = f"{math.exp(statistic):.2f} times as large"
    return judge(
        "isotropy",
        statistic,
        np.array([ratio(draw) for draw in draws]),
        margin=MARGINS["isotropy"],
        unit="log ratio of the largest to the smallest",
        good=f"The noise is about as large in every direction (at most {times} as in another).",
        bad=f"The noise is {times} in one direction as in another.",
    )


def _position(pairs: Paired, law: Law, draws: list[Paired]) -> Check:
    """See whether the noise depends on where the anchor is."""

    def r2(p: Paired) -> float:
        size = special.ndtri(np.clip(law.sizes(p.z, p.z_tilde), 1e-4, 1 - 1e-4)).mean(axis=1)
        targets = np.column_stack([size, law.noise(p.z, p.z_tilde)])
        return float(_explained(_polynomials(p.z), targets, p.chains).clip(0).max())

    statistic = r2(pairs)
    found = f"The anchor explains {100 * statistic:.1f} % of the size or direction of the noise"
    return judge(
        "position",
        statistic,
        np.array([r2(draw) for draw in draws[: _DRAWS // 2]]),
        margin=MARGINS["position"],
        unit="held-out R²",
        good=f"{found}, no more than chance and learning bring.",
        bad=f"{found}: the noise is not the same everywhere.",
    )


def _support(pairs: Paired, law: Law, draws: list[Paired]) -> Check:
    """See whether positives reach as far as the assumed law lets them."""

    def missing(p: Paired) -> float:
        sizes = law.sizes(p.z, p.z_tilde)
        beyond = float((sizes > _TAIL).sum()) + 0.5
        return max(0.0, math.log2((1 - _TAIL) * sizes.size / beyond))

    statistic = missing(pairs)
    share = 100 * 2**-statistic
    found = f"Of the large differences that the law expects, {share:.0f} % are there"
    return judge(
        "support",
        statistic,
        np.array([missing(draw) for draw in draws]),
        margin=MARGINS["support"],
        unit="log2 of expected over found",
        good=f"{found}.",
        bad=f"{found}: positives do not reach everywhere.",
    )


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
    """Return the held-out R² ``(t,)`` of each target ``(M, t)`` by ridge regression.

    Blocks ``(M,)`` are not split between folds.
    """
    mean, whiten = _standardiser(features)
    design = (features - mean) @ whiten
    _, place = np.unique(blocks, return_inverse=True)
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
