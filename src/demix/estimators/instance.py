"""Latents from the rows alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.checks import check_data
from demix.data.data import Data
from demix.estimators.base import Demixer
from demix.estimators.label_sources import InstanceRows
from demix.estimators.sources import Augmentation
from demix.losses.classification import InstanceDiscrimination, Sampled
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe

# With more rows, a step uses the prototypes of its batch only.
_EXACT = 8192


class InstanceDemixer(Demixer):
    r"""Recover latents without labels: every row is a class of its own (DIET).

    Plain cross-entropy tells views of a row, made by an augmentation or by adding noise, from those
    of all other rows (Eq. 3 of Reizinger et al. 2024). What the views leave unchanged is recovered
    up to a linear map.

    Parameters
    ----------
    n_latents, space, unit_prototypes
        As in :class:`ClassifierDemixer`.
    augmentation : callable, optional
        ``augmentation(x)`` makes a new view of rows ``(B, ...)``. By default noise is added, which
        surrounds the observations and not factors behind them: no theorem covers it.
    noise : float
        Size of the noise, relative to the standard deviation of each column.
    encoder, recipe, random_state, device
        As in :class:`ContrastiveDemixer`. Every row has its own class, so new views of all rows
        are held out instead of rows.

    Attributes
    ----------
    encoder_, gain_, history_, best_step_, notes_
        As in :class:`ContrastiveDemixer`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import InstanceDemixer
    >>> x = np.random.default_rng(0).normal(size=(200, 5))
    >>> InstanceDemixer(n_latents=2).fit_transform(x).shape
    (200, 2)
    """

    supervision = "instances"
    targets = "views"
    validation = 0.2
    _keeps_objective = False

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "real",
        unit_prototypes: bool = False,
        augmentation: Augmentation | None = None,
        noise: float = 0.3,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents, self.space, self.encoder, self.recipe = n_latents, space, encoder, recipe
        self.unit_prototypes, self.augmentation, self.noise = unit_prototypes, augmentation, noise
        self.random_state, self.device = random_state, device

    def setting(self) -> Setting:
        """Return what theory needs to know."""
        conditional = "vmf" if self.augmentation else "noise in the observations"
        return Setting(
            "instances", self._space(), conditional, unit_prototypes=self.unit_prototypes
        )

    def _new_objective(self, space: Space, rows: int) -> InstanceDiscrimination:
        sampled: Sampled = "batch" if rows > _EXACT else None
        return InstanceDiscrimination(
            rows, space.dim, unit_prototypes=self.unit_prototypes, sampled=sampled
        )

    def _source(self, data: Data, targets: Tensor | None, seed: int) -> InstanceRows:
        return InstanceRows(data, self.augmentation or self._added_noise(data))

    def _added_noise(self, data: Data) -> Augmentation:
        """Return the augmentation that adds noise to each column."""
        if not isinstance(self.noise, int | float) or not 0 < self.noise < float("inf"):
            raise DemixError(f"noise must be positive and finite, but got {self.noise!r}.")
        width = self.noise * torch.from_numpy(check_data(data).std).float()
        width = width.reshape(-1, *([1] * (len(data.shape) - 2)))

        def noisy(x: Tensor) -> Tensor:
            return x + width.to(x.device) * torch.randn(x.shape).to(x.device)

        return noisy
