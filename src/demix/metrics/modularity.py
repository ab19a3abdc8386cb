"""How far each latent keeps to one factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demix.metrics.factors import check_factors
from demix.metrics.held import Held, Parts, mean_of, over, scored, shuffled
from demix.metrics.information import binned_information
from demix.metrics.score import Score


def modularity(
    latents: Any, factors: Any, *, categorical: Sequence[int] | None = None, seed: int = 0
) -> Score:
    r"""Return the modularity (Ridgeway & Mozer 2018, Section 3).

    With :math:`I_{ij}` the information of latent j about factor i, and the largest of them
    :math:`\theta_j = \max_i I_{ij}`,

    .. math:: \frac{1}{m} \sum_j \left( 1 -
              \frac{\sum_i I_{ij}^2 - \theta_j^2}{\theta_j^2 (n - 1)} \right)

    A latent that tells of no factor counts 0. Information is counted as in
    :func:`mutual_information_gap`.

    Parameters
    ----------
    latents : array (N, m)
        What an encoder recovered.
    factors : array (N, n)
        The true factors.
    categorical : sequence of int, optional
        Which factors are categories, counted from 0. By default those that hold text or truth
        values, or whole numbers of at most 20 different values.
    seed : int
        Seed of the shuffled baseline and of the interval.

    Returns
    -------
    Score
        Invariant to the order of the latents and to monotone maps of each.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.modularity import modularity
    >>> z = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> float(round(modularity(np.exp(z[:, ::-1]), z), 6))
    1.0
    >>> float(round(modularity(np.hstack([z, np.zeros((2000, 1))]), z), 6))
    0.666667
    """
    latents, true = check_factors(latents, factors, categorical)

    def measure(z: np.ndarray) -> Held:
        information = binned_information(z, true)

        def modular(weights: np.ndarray) -> Parts:
            return mean_of(modularity_of(information.of(weights)[0]))

        return Held(len(z), modular)

    return scored(
        measure(latents),
        lambda: measure(shuffled(latents, seed)),
        seed=seed,
        certifies="latents that each tell of one factor only",
        leaves_open="any map of each; factors that are lost, or spread over several latents",
        over="latent",
    )


def modularity_of(information: np.ndarray) -> np.ndarray:
    """Return the modularity ``(..., m)`` of each latent from information ``(..., n, m)``."""
    square = np.square(information)
    largest = square.max(axis=-2)
    # With a single factor no latent can tell of another.
    rest = over(square.sum(axis=-2) - largest, largest * max(information.shape[-2] - 1, 1))
    return np.where(largest > 0, 1 - rest, 0.0)
