"""Earlier methods: time-contrastive and generalised contrastive learning."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.sharding import shardings
from demix.losses.classification import Classification
from demix.losses.prototypes import PrototypeObjective, check_features, check_labels

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

    If the latents follow an exponential family with statistics :math:`q` whose parameters change
    from segment to segment, :math:`q(f(x))` recovers the statistics up to a linear map.

    Parameters
    ----------
    segments, dim : int
        Number of segments, the labels of the batches, and of latents.
    statistics : sequence of str
        The statistics :math:`q`, of ``"identity"``, ``"absolute"`` and ``"square"``.
    bias : bool
        Learn :math:`b_t`, which carries the normaliser of the family.

    References
    ----------
    Hyvarinen and Morioka (2016), Unsupervised Feature Extraction by Time-Contrastive Learning and
    Nonlinear ICA.

    Examples
    --------
    >>> from demix.papers import TimeContrastive
    >>> TimeContrastive(40, 5, statistics=("identity", "square")).weight.shape
    torch.Size([40, 10])
    """

    theorem = "Theorem 1 of Hyvarinen and Morioka (2016)"
    labelled, latents = "segments", "statistics"

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
        """Return the loss ``()`` of features ``(B, dim)``."""
        check_features(features, self.weight.shape[1] // len(self.statistics), self.group)
        maps = [_STATISTICS[name](features) for name in self.statistics]
        return super().loss(torch.cat(maps, dim=1), labels)


class GeneralizedContrastive(PrototypeObjective):
    r"""GCL: tell samples with their own auxiliary value from samples with a shuffled one.

    Logistic regression with :math:`r(x, u) = \langle w_u, f(x) \rangle + a(f(x)) + b_u`, which at
    the optimum is :math:`\log p(x | u) / p(x)`.

    Parameters
    ----------
    values, dim : int
        Number of values ``u`` of the auxiliary variable, the labels of the batches, and of latents.
    hidden : int
        Units of :math:`a`, which carries what does not depend on ``u``.

    References
    ----------
    Hyvarinen, Sasaki and Turner (2019), Nonlinear ICA Using Auxiliary Variables and Generalized
    Contrastive Learning.

    Examples
    --------
    >>> from demix.papers import GeneralizedContrastive
    >>> GeneralizedContrastive(40, 5).weight.shape
    torch.Size([40, 5])
    """

    theorem = "Theorem 3 of Hyvarinen, Sasaki and Turner (2019)"
    labelled = "values"

    def __init__(self, values: int, dim: int, *, hidden: int = 64) -> None:
        super().__init__(values, dim, bias=True)
        self.common = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, 1))
        self.initialise()

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw small prototypes and the weights of ``a``."""
        super().initialise(generator)
        for weight in self.common.parameters():
            if weight.ndim == 2:
                weight.normal_(0, weight.shape[1] ** -0.5, generator=generator)
            else:
                weight.zero_()

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` against the labels of all others: the mean of all shuffles."""
        check_features(features, self.weight.shape[1], self.group)
        labels = check_labels(labels, len(features), self.classes)
        (split,) = shardings(self.group, features)
        if split.total < 2:
            raise DemixError("Shuffled labels need at least 2 samples, but got 1.")
        # Labels are those of all ranks; ratios are those of own samples.
        present, place, counts = split.gathered(labels).unique(
            return_inverse=True, return_counts=True
        )
        ratios = self.log_ratios(features, present)
        own = ratios.gather(1, place[split.own][:, None])[:, 0]
        shuffled = functional.softplus(ratios) @ counts.to(ratios) - functional.softplus(own)
        return split.mean(functional.softplus(-own)) + split.mean(shuffled) / (split.total - 1)

    def log_ratios(self, features: Tensor, values: Tensor) -> Tensor:
        """Return ``r(x, u)`` ``(B, U)`` of features ``(B, dim)`` and each of the ``values``."""
        by_value: Tensor = features @ self.weight[values].T + self.bias[values]
        return by_value + self.common(features)
