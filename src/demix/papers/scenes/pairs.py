"""Exact pairs: latents drawn around latents, to be rendered themselves."""

from __future__ import annotations

import math

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_seed
from demix.papers.scenes.base import Scene

_KINDS = ("normal", "laplace")


def check_noise(noise: str) -> tuple[str, float]:
    """Return kind and scale of ``normal:0.1`` or ``laplace:0.05``."""
    kind, _, number = noise.partition(":")
    try:
        scale = float(number)
    except ValueError:
        scale = math.nan
    if kind not in _KINDS or not 0 < scale < math.inf:
        raise DemixError(
            f"Pairs are given as normal:SIGMA or laplace:LAMBDA, for example normal:0.1, but got "
            f"{noise!r}."
        )
    return kind, scale


def positive_latents(scene: Scene, latents: np.ndarray, noise: str, seed: int) -> np.ndarray:
    r"""Draw a positive :math:`\tilde z \sim p(\tilde z | z)` for each row, truncated to the box.

    The conditional of Zimmermann et al. (2021), Eq. 5, on the box of the latents ``(N, d)``, with
    ``noise`` ``normal:SIGMA`` or ``laplace:LAMBDA``; categories of the scene stay as they are.
    Published pairs of 3DIdent are the nearest neighbours among finitely many images; these are
    exact. The seed may be that of the latents.

    Examples
    --------
    >>> from demix.papers.scenes.pairs import positive_latents
    >>> from demix.papers import sample_latents, scene_named
    >>> scene = scene_named("sprites")
    >>> z = sample_latents(scene, 100, seed=0)
    >>> positive = positive_latents(scene, z, "normal:0.1", seed=0)
    >>> bool((positive[:, 0] == z[:, 0]).all()), bool((abs(positive[:, 1:]) <= 1).all())
    (True, True)
    """
    kind, scale = check_noise(noise)
    # Only here: whoever renders without pairs does not wait for torch, nor does any worker.
    import torch

    from demix.distributions.generalized_normal import Laplace, Normal
    from demix.spaces.box import Box

    free = [k for k, name in enumerate(scene.latents) if name not in scene.categories]
    box = Box(len(free), low=-1.0, high=1.0)
    conditional = Normal(box, scale) if kind == "normal" else Laplace(box, scale)
    # Not the numbers that made the latents, even if torch and NumPy drew them alike.
    generator = torch.Generator().manual_seed(check_seed(seed) + 2**40)
    anchors = torch.from_numpy(latents[:, free].astype(np.float64))
    drawn = conditional.sample(anchors, generator=generator).numpy()
    positives = latents.astype(np.float32)
    positives[:, free] = np.clip(drawn, -1, 1)
    return positives
