"""Series to compare estimators on: walks through known latents, and a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from demix.distributions.base import Conditional
from demix.distributions.generalized_normal import Laplace
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.processes.process import LeakyMixing
from demix.spaces.kinds import Box, Sphere

_LATENTS = 5
_SEED = 0
# Rows after the fitted ones that are held out, in parts of them.
_HELD_OUT = 4
# So many moments of the recording make a row.
_MOMENTS = 5


@dataclass(frozen=True, eq=False)
class Series:
    """Rows ``x`` ``(N, d)`` in time order, later rows ``held_out`` and their ``factors``."""

    x: np.ndarray
    held_out: np.ndarray
    factors: np.ndarray | None
    n_latents: int
    space: str


def sphere_walk(rows: int) -> Series:
    """Walk on a sphere in steps of vMF noise (κ = 20), seen through a random mixing."""
    return _walk("sphere", VonMisesFisher(Sphere(_LATENTS), 20.0), rows)


def box_walk(rows: int) -> Series:
    """Walk in a box in steps of Laplace noise (λ = 0.05), seen through a random mixing."""
    return _walk("box", Laplace(Box(_LATENTS), 0.05), rows)


def recording(rows: int) -> Series:
    """Four channels of an EEG that comes with matplotlib, five moments to a row."""
    from matplotlib.cbook import get_sample_data

    channels = np.fromfile(get_sample_data("eeg.dat", asfileobj=False), dtype=float).reshape(-1, 4)
    windows = np.lib.stride_tricks.sliding_window_view(channels, _MOMENTS, axis=0)
    x = windows.reshape(len(windows), -1).astype(np.float32)[:rows]
    cut = len(x) * (_HELD_OUT - 1) // _HELD_OUT
    return Series(x[:cut], x[cut:], None, 3, "sphere")


DATA: dict[str, Callable[[int], Series]] = {
    "walk on a sphere": sphere_walk,
    "walk in a box": box_walk,
    "EEG": recording,
}


def _walk(space: str, conditional: Conditional, rows: int) -> Series:
    generator = torch.Generator().manual_seed(_SEED)
    z = conditional.space.uniform(1, generator=generator)
    steps = []
    for _ in range(rows + rows // _HELD_OUT):
        z = conditional.sample(z, generator=generator)
        steps.append(z)
    factors = torch.cat(steps)
    x = LeakyMixing(_LATENTS, seed=_SEED)(factors).numpy()
    return Series(x[:rows], x[rows:], factors[rows:].numpy(), _LATENTS, space)
