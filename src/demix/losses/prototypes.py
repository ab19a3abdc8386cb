"""A table of rows, one per label, that an objective trains with the encoder."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder
from demix.losses.objective import LabelBatch, Objective

# Size of the rows that training starts from, relative to that of a random unit vector.
_START = 0.1


class PrototypeObjective(nn.Module, Objective[LabelBatch]):
    """An objective over labelled samples with a row for each label.

    Parameters
    ----------
    classes : int
        Number of rows.
    dim : int
        Number of columns.
    unit_prototypes : bool
        Keep the rows on the unit sphere.
    """

    def __init__(self, classes: int, dim: int, *, unit_prototypes: bool = False) -> None:
        super().__init__()
        if classes < 2 or dim < 1:
            raise DemixError(
                f"A table needs at least 2 rows of 1 dimension, but got {classes} of {dim}."
            )
        self.classes, self.unit_prototypes = classes, unit_prototypes
        self.weight = nn.Parameter(torch.empty(classes, dim))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the rows anew: small, so that there is little to unlearn.

        Rows of the size that they will have pull the features to where chance has put them; small
        ones take their places from the data first, and the encoder folds the latents far less
        often. :func:`demix.train` calls this with the generator of its seed.
        """
        self.weight.normal_(0, _START / math.sqrt(self.weight.shape[1]), generator=generator)
        super().initialise(generator)

    def prototypes(self) -> Tensor:
        """Return the rows as the loss sees them, ``(classes, dim)``."""
        return self._sized(self.weight)

    def forward(self, encoder: Encoder, batch: LabelBatch) -> Tensor:
        """Return the loss ``()`` of a labelled batch."""
        return self.loss(encoder(batch.x), batch.labels)

    @abstractmethod
    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)`` that are already there."""

    def _sized(self, rows: Tensor) -> Tensor:
        return functional.normalize(rows, dim=1) if self.unit_prototypes else rows
