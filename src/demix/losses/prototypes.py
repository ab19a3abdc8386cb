"""Losses with a prototype for each label, trained with the encoder and divided over ranks."""

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional

from demix._support.errors import DemixError, warn
from demix._support.process_group.sharding import Sharding, log_summed, summed
from demix.encoders.encoder import Encoder
from demix.losses.objective import LabelBatch, Objective
from demix.losses.similarities import similarity_named
from demix.losses.streaming import pairwise_logsumexp

_START = 0.1  # size of the prototypes at the start, relative to that of a random unit vector


class PrototypeObjective(nn.Module, Objective[LabelBatch]):
    """A loss over labelled samples with a prototype, and perhaps an offset, for each label.

    The prototypes are ``weight`` ``(classes, dim)``, brought to unit length if
    ``unit_prototypes``. ``theorem``, ``labelled`` and ``latents`` are words for a warning.
    """

    theorem: str = "Theorem 1 of Reizinger et al. (2024)"
    labelled: str = "classes"
    latents: str = "latents"

    def __init__(
        self, classes: int, dim: int, *, unit_prototypes: bool = False, bias: bool = False
    ) -> None:
        super().__init__()
        if classes < 2 or dim < 1:
            raise DemixError(
                f"A classifier needs at least 2 prototypes of 1 dimension, but got {classes} of "
                f"{dim}."
            )
        if classes < dim + 1:
            warn(
                f"{self.theorem} needs an affine generator system, for {dim} {self.latents} at "
                f"least {dim + 1} {self.labelled}, but there are {classes}: only a {classes - 1}-"
                f"dimensional linear part of the {self.latents} can be recovered. Take more "
                f"{self.labelled}, or recover at most {classes - 1} of the {self.latents}."
            )
        self.classes, self.unit_prototypes = classes, unit_prototypes
        self.weight = nn.Parameter(torch.empty(classes, dim))
        self.bias: Any = nn.Parameter(torch.zeros(classes)) if bias else None

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the prototypes anew: small, so that they take their places from the data first."""
        # Of their final size they would pull features to chance places, and fold the latents.
        self.weight.normal_(0, _START / math.sqrt(self.weight.shape[1]), generator=generator)
        if self.bias is not None:
            self.bias.zero_()
        super().initialise(generator)

    def prototypes(self) -> Tensor:
        """Return the prototypes as the loss sees them, ``(classes, dim)``."""
        return self._sized(self.weight)

    def forward(self, encoder: Encoder, batch: LabelBatch) -> Tensor:
        """Return the loss ``()`` of a labelled batch."""
        return self.loss(encoder(batch.x), batch.labels)

    @abstractmethod
    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)``."""

    def _sized(self, prototypes: Tensor) -> Tensor:
        return functional.normalize(prototypes, dim=1) if self.unit_prototypes else prototypes


def check_features(features: Tensor, dim: int, group: dist.ProcessGroup | None = None) -> None:
    """Raise an error unless features are ``(B, dim)``; a rank of a group may have none."""
    empty = group is None and len(features) == 0
    if features.ndim != 2 or features.shape[1] != dim or empty:
        raise DemixError(
            f"Features must be a matrix of at least one sample with {dim} latents each, as the "
            f"objective expects, but have shape {tuple(features.shape)}."
        )


def check_labels(labels: Tensor, samples: int, classes: int) -> Tensor:
    """Return the labels of a batch as int64 ``(samples,)``, all of them in ``0..classes - 1``."""
    if not torch.is_tensor(labels):
        raise DemixError(
            f"labels must be a tensor of {samples} whole numbers, one per sample, but got "
            f"{type(labels).__name__}; convert them with torch.as_tensor."
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise DemixError(
            f"labels must be whole numbers, one class per sample, but are {labels.dtype}; convert "
            "them with labels.long()."
        )
    if labels.shape != (samples,):
        raise DemixError(
            f"{samples} samples need {samples} labels, one each, but got {tuple(labels.shape)}."
        )
    if samples and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        raise DemixError(
            f"labels must name one of {classes} classes, 0..{classes - 1}, but go from "
            f"{int(labels.min())} to {int(labels.max())}; count them from 0, and give the "
            "objective as many classes as there are."
        )
    return labels.long()


# With prototypes divided over ranks, all queries come to all ranks, for they are fewer. Each rank
# compares them with its own prototypes, and the ranks exchange one number per query.


def log_sums(
    queries: Tensor, keys: Tensor, sharding: Sharding, *, skip: Tensor | None = None
) -> Tensor:
    """Return ``log sum_j exp <q_i, k_j>`` ``(B,)`` over all ranks' keys; without own ``skip``."""
    sums, _ = pairwise_logsumexp(queries, keys, similarity_named("dot"), skip=skip)
    return log_summed(sums, sharding.group)


def own_similarities(queries: Tensor, own: Tensor, here: Tensor, sharding: Sharding) -> Tensor:
    """Return ``<q_i, k_+(i)>`` ``(B,)``; queries ``here`` ``(n,)`` have keys ``own`` ``(n, d)``."""
    pairs = similarity_named("dot")
    if sharding.group is None:
        return pairs.paired(queries, own)
    found = pairs.paired(queries[here], own)
    return summed(found.new_zeros(len(queries)).index_put((here,), found), sharding.group)


def labels_here(labels: Tensor, sharding: Sharding) -> Tensor:
    """Return which of the labels ``(N,)`` have their prototype on this rank, as int64 ``(n,)``."""
    own = sharding.own
    return torch.nonzero((labels >= own.start) & (labels < own.stop))[:, 0]


def draw_distinct(count: int, total: int, generator: torch.Generator) -> Tensor:
    """Return ``count`` different numbers below ``total`` in order, any set equally probable."""
    if 2 * count > total:
        return torch.randperm(total, generator=generator)[:count].sort().values
    drawn = torch.randint(total, (count,), generator=generator).unique()
    while len(drawn) < count:
        # Topped up and never cut, so that no number is treated differently from another.
        more = torch.randint(total, (count - len(drawn),), generator=generator)
        drawn = torch.cat([drawn, more]).unique()
    return drawn


def places(drawn: Tensor, wanted: Tensor) -> Tensor:
    """Return the place in the sorted ``drawn`` of each of ``wanted``, or -1."""
    if len(drawn) == 0:
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(drawn, wanted).clamp_max(len(drawn) - 1)
    return torch.where(drawn[place] == wanted, place, -1)


def sampled_log_likelihood(matched: Tensor, others: Tensor, drawn: Tensor, total: int) -> Tensor:
    r"""Estimate :math:`\log p(+(i) | q_i)` under a softmax over ``total`` keys, ``(B,)``.

    The denominator :math:`e^{s_{i+}} + \frac{N - 1}{S_i} \sum_{j \neq +(i)} e^{s_{ij}}` over drawn
    keys is without bias. ``matched`` are :math:`s_{i+}`, ``others`` the logarithms of the sums, and
    ``drawn`` the numbers :math:`S_i` of their terms.
    """
    represented = drawn.to(others).log()  # in their type, so that float64 keeps its digits
    return matched - torch.logaddexp(matched, others + math.log(total - 1) - represented)
