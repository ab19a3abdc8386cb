"""The elders of the family: time-contrastive and generalised contrastive learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix.encoders import Encoder
from demix.errors import DemixError
from demix.objectives.classification import Classification, starting_rows
from demix.objectives.labels import check_features, check_labels
from demix.processes import Labelled

Statistic = Literal["identity", "absolute", "square"]

_STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda h: h,
    "absolute": torch.abs,
    "square": torch.square,
}


class TimeContrastive(Classification):
    r"""TCL: tell the segment of a time series from its observations.

    .. math:: -\log \frac{e^{\langle w_t, q(f(x)) \rangle + b_t}}
              {\sum_s e^{\langle w_s, q(f(x)) \rangle + b_s}}

    The latents follow an exponential family with statistics :math:`q` whose parameters change from
    segment to segment; :math:`q(f(x))` recovers the statistics up to a linear map. With the
    identity and no bias it is DIET with free rows on segment labels.

    Parameters
    ----------
    segments : int
        Number of segments, the labels of the batches.
    dim : int
        Number of latents.
    statistics : sequence of str
        Of ``"identity"``, ``"absolute"`` and ``"square"``: the statistics :math:`q` of the family,
        e.g. ``("absolute",)`` for Laplace latents whose scale changes.
    bias : bool
        Learn :math:`b_t`, which carries the normaliser of the family.

    References
    ----------
    Hyvarinen and Morioka (2016), Unsupervised Feature Extraction by Time-Contrastive Learning and
    Nonlinear ICA.

    Examples
    --------
    >>> from demix import TimeContrastive
    >>> TimeContrastive(40, 5, statistics=("identity", "square")).rows.shape
    torch.Size([40, 10])
    """

    def __init__(
        self,
        segments: int,
        dim: int,
        *,
        statistics: Sequence[Statistic] = ("identity",),
        bias: bool = True,
    ) -> None:
        unknown = [name for name in statistics if name not in _STATISTICS]
        if unknown or not statistics:
            raise DemixError(
                f"statistics are some of {', '.join(_STATISTICS)}, but got {tuple(statistics)!r}."
            )
        super().__init__(segments, dim * len(statistics), bias=bias)
        self.statistics = tuple(statistics)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)`` that are already there."""
        check_features(features, self.rows.shape[1] // len(self.statistics))
        maps = [_STATISTICS[name](features) for name in self.statistics]
        return super().loss(torch.cat(maps, dim=1), labels)


class GeneralizedContrastive(nn.Module):
    r"""GCL: tell samples with their own auxiliary value from samples with a shuffled one.

    Logistic regression with :math:`r(x, u) = \langle w_u, f(x) \rangle + a(f(x)) + b_u`, which at
    the optimum is :math:`\log p(x | u) / p(x)`.

    Parameters
    ----------
    values : int
        How many values ``u`` the auxiliary variable takes, the labels of the batches.
    dim : int
        Number of latents.
    hidden : int
        Units of :math:`a`, which carries what does not depend on ``u``.

    References
    ----------
    Hyvarinen, Sasaki and Turner (2019), Nonlinear ICA Using Auxiliary Variables and Generalized
    Contrastive Learning.

    Examples
    --------
    >>> from demix import GeneralizedContrastive
    >>> GeneralizedContrastive(40, 5).rows.shape
    torch.Size([40, 5])
    """

    def __init__(self, values: int, dim: int, *, hidden: int = 64) -> None:
        super().__init__()
        if values < 2 or dim < 1:
            raise DemixError(
                f"A table needs at least 2 rows of 1 dimension, but got {values} of {dim}."
            )
        self.rows = nn.Parameter(starting_rows(values, dim))
        self.bias = nn.Parameter(torch.zeros(values))
        self.common = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, encoder: Encoder, batch: Labelled) -> Tensor:
        """Return the loss ``()`` of a labelled batch."""
        return self.loss(encoder(batch.x), batch.labels)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()``; the labels of the next samples are the shuffled ones."""
        own = self.log_ratio(features, labels)
        if len(labels) < 2:
            raise DemixError("Shuffled labels need at least 2 samples, but got 1.")
        # Samples are independent, so that those of the neighbour are as good as any shuffle.
        other = self.log_ratio(features, labels.roll(1))
        return functional.softplus(-own).mean() + functional.softplus(other).mean()

    def log_ratio(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return ``r(x, u)`` ``(B,)``."""
        check_features(features, self.rows.shape[1])
        labels = check_labels(labels, len(features), len(self.rows))
        linear = (features * self.rows[labels]).sum(dim=1) + self.bias[labels]
        common: Tensor = self.common(features)[:, 0]
        return linear + common
