"""Latents from nothing but the rows themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.data.checks import Findings, check_data
from demix.estimators.assumptions import assumed_space
from demix.estimators.base import Demixer
from demix.estimators.examples import InstanceRows
from demix.estimators.fitting import Report, warn_of_no_gain
from demix.estimators.seeding import seeded
from demix.estimators.views import Augmentation
from demix.losses.classification import InstanceDiscrimination
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe

# With more rows, those of the batch stand for all at every step.
_EXACT = 8192


class InstanceDemixer(Demixer):
    r"""Recover latents without labels: every row is a class of its own (DIET).

    Views of a row, made by an augmentation or by adding noise, are told from those of all other
    rows with plain cross-entropy (Eq. 3 of Reizinger et al. 2024); what the views leave unchanged
    is recovered up to a linear map.

    Parameters
    ----------
    n_latents : int
        Number of latents.
    space : str or Space
        Where features lie: ``"real"`` leaves them free, ``"sphere"`` brings them to one length.
    unit_rows : bool
        Keep the table's rows on the unit sphere.
    augmentation : callable, optional
        ``augmentation(x)`` makes a new view of rows ``(B, ...)``; by default noise is added.
    noise : float
        Size of the noise, relative to the standard deviation of each column.
    encoder, recipe, random_state, device
        As in :class:`ContrastiveDemixer`. Every row has its own class, so that new views of all
        rows are held out instead of rows.

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
    teachers = "views"
    validation = 0.2

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "real",
        unit_rows: bool = False,
        augmentation: Augmentation | None = None,
        noise: float = 0.3,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents = n_latents
        self.space = space
        self.unit_rows = unit_rows
        self.augmentation = augmentation
        self.noise = noise
        self.encoder = encoder
        self.recipe = recipe
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        report: Report | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on the rows of ``X``; ``y`` is ignored.

        Parameters
        ----------
        X, report, checkpoint
            As in :meth:`ContrastiveDemixer.fit`.
        y : None
            Ignored.
        """
        return self._learn(X, report, checkpoint, goes_on=False)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on from the encoder of the last fit, with new rows; the first call is a fit."""
        return self._learn(X, None, None, goes_on=hasattr(self, "encoder_"))

    def setting(self) -> Setting:
        """Return what theory needs to know."""
        space = assumed_space(self.space, self.n_latents)
        return Setting("instances", space, unit_prototypes=self.unit_rows)

    def source(self, X: Any, y: Any = None) -> InstanceRows:
        """Return where the views of a fit to these data come from."""
        data = self._data(X, reset=False)
        return InstanceRows(data, self.augmentation or self._noise(check_data(data), data.shape))

    def _learn(
        self, X: Any, report: Report | None, checkpoint: str | Path | None, *, goes_on: bool
    ) -> Self:
        space = self._space()
        data = self._data(X, reset=not goes_on)
        data, found = self._checked(data)
        with seeded(self._seed()):
            objective = InstanceDiscrimination(
                len(data),
                space.dim,
                unit_rows=self.unit_rows,
                sampled="batch" if len(data) > _EXACT else None,
            )
        self._fit(
            self.encoder_ if goes_on else self._new_encoder(space),
            objective,
            InstanceRows(data, self.augmentation or self._noise(found, data.shape)),
            found,
            steps=4000,
            goes_on=goes_on,
            report=report,
            checkpoint=checkpoint,
            digest=data.digest(),
        )
        warn_of_no_gain(self.gain_, self.teachers)
        return self

    def _noise(self, found: Findings, shape: tuple[int, ...]) -> Augmentation:
        """Return the augmentation that adds noise to each column."""
        if not isinstance(self.noise, int | float) or not 0 < self.noise < float("inf"):
            raise DemixError(f"noise must be positive and finite, but got {self.noise!r}.")
        width = self.noise * torch.from_numpy(found.std).float()
        width = width.reshape(-1, *([1] * (len(shape) - 2)))

        def noisy(x: Tensor) -> Tensor:
            return x + width.to(x.device) * torch.randn(x.shape).to(x.device)

        return noisy
