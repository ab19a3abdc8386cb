"""Samplers beside scipy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats

from benchmarks.sizes import Sizes
from benchmarks.timing import Say, interleaved, medians, ratios, under
from demix.distributions.base import Conditional
from demix.distributions.generalized_normal import GeneralizedNormal, Normal
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.spaces.kinds import Box, Real, Sphere

_KAPPA = 10.0
_SCALE = 0.05
_SHAPE = 3.0


def measure_samplers(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Draw the same number of samples from each of ours and from scipy's.

    Returns
    -------
    dict
        ``entries`` with ``ours``, ``theirs`` (what scipy is asked for), the samples per second of
        both and their ratio. A sample is a vector of all latents.
    """
    random = np.random.default_rng(0)
    inside = random.uniform(size=(sizes.samples, sizes.dim))
    entries = []
    for ours, theirs, draw in _peers(sizes, inside, random):
        anchors = torch.from_numpy(inside.astype(np.float32))
        calls = {"demix": _ours(ours, ours.space.project(anchors)), "scipy": draw}
        times = interleaved(calls, sizes.rounds, under(theirs, say))
        seconds = medians(times)
        entries.append(
            {
                "ours": repr(ours),
                "theirs": theirs,
                "per_second": {name: sizes.samples / seconds[name] for name in seconds},
                "speedup": ratios(times, "demix")["scipy"],
            }
        )
    return {"samples": sizes.samples, "entries": entries}


def _ours(conditional: Conditional, anchors: torch.Tensor) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    return lambda: conditional.sample(anchors, generator=generator)


def _peers(
    sizes: Sizes, inside: np.ndarray, random: np.random.Generator
) -> list[tuple[Conditional, str, Callable[[], object]]]:
    """Return our sampler, scipy's name for it and a draw from that.

    The noise of scipy is centred at the same anchors, except on the sphere, where it knows a single
    mean direction.
    """
    shape = inside.shape
    pole = np.eye(sizes.dim)[0]
    low, high = -inside / _SCALE, (1 - inside) / _SCALE

    def truncated() -> np.ndarray:
        bottom, top = stats.gennorm.cdf(low, _SHAPE), stats.gennorm.cdf(high, _SHAPE)
        unit = bottom + (top - bottom) * random.uniform(size=shape)
        return np.asarray(inside + _SCALE * stats.gennorm.ppf(unit, _SHAPE))

    return [
        (
            VonMisesFisher(Sphere(sizes.dim), _KAPPA),
            "vonmises_fisher",
            lambda: stats.vonmises_fisher(pole, _KAPPA).rvs(sizes.samples, random_state=random),
        ),
        (
            Normal(Box(sizes.dim), _SCALE),
            "truncnorm",
            lambda: stats.truncnorm.rvs(low, high, inside, _SCALE, shape, random_state=random),
        ),
        (
            GeneralizedNormal(Box(sizes.dim), _SHAPE, _SCALE),
            "gennorm, truncated by its ppf",
            truncated,
        ),
        (
            GeneralizedNormal(Real(sizes.dim), _SHAPE, _SCALE),
            "gennorm",
            lambda: stats.gennorm.rvs(_SHAPE, inside, _SCALE, shape, random_state=random),
        ),
    ]
