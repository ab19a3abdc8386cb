"""How the cost of a training step grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.sizes import Sizes
from benchmarks.step import steps_of
from benchmarks.timing import Say, interleaved, medians
from demix.distributions.base import Uniform
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.pairs import InfoNCE
from demix.processes.process import LeakyMixing, Process
from demix.spaces.kinds import Sphere
from demix.training.recipe import Recipe

_STEPS = 4
_BATCH, _WIDTH, _LAYERS = 1024, 64, 8


def measure_scaling(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time a step of the laptop encoder with InfoNCE against batch, latents and width.

    Returns
    -------
    dict
        ``curves``, one per quantity, with its ``values``, the ``seconds`` of a step and the fitted
        ``exponent`` over the upper half of the values.
    """
    batch, width = min(_BATCH, max(sizes.scaled_batches)), min(_WIDTH, max(sizes.scaled_widths))
    settings = {
        "batch": [(value, sizes.dim, width) for value in sizes.scaled_batches],
        "latents": [(batch, value, width) for value in sizes.scaled_latents],
        "width": [(batch, sizes.dim, value) for value in sizes.scaled_widths],
    }
    curves = {}
    for position, (name, shapes) in enumerate(settings.items()):
        calls = {f"{name} {shape[position]}": _step(*shape) for shape in shapes}
        seconds = [
            spent / _STEPS for spent in medians(interleaved(calls, sizes.rounds, say)).values()
        ]
        values = [shape[position] for shape in shapes]
        curves[name] = {
            "values": values,
            "seconds": seconds,
            "exponent": exponent(values, seconds),
        }
    return {"batch": batch, "latents": sizes.dim, "width": width, "curves": curves}


def _step(batch: int, latents: int, width: int) -> Any:
    sphere = Sphere(latents)
    process = Process(
        Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(latents, seed=0, draws=100)
    )
    encoder = Encoder(latents, sphere, hidden=(width,) * _LAYERS)
    return steps_of(encoder, process, InfoNCE(), Recipe(batch=batch), _STEPS)


def exponent(values: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds over log values, by least squares over the upper half.

    Small steps are all overhead; the upper half shows where the cost goes.

    Examples
    --------
    >>> from benchmarks.scaling import exponent
    >>> round(exponent([1, 2, 4, 8], [5.0, 5.0, 16.0, 64.0]), 6)
    2.0
    """
    # At least two points make a slope.
    upper = max(2, math.ceil(len(values) / 2))
    slope, _ = np.polyfit(np.log(values[-upper:]), np.log(seconds[-upper:]), 1)
    return float(slope)
