"""Cross-entropy over prototypes: one per class, or one per instance (DIET)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Self

import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.sharding import (
    Sharding,
    even_sharding,
    shardings,
    shared_gradient,
)
from demix._support.validation import check_share
from demix.encoders.encoder import Encoder
from demix.losses import prototypes
from demix.losses.contrast import full
from demix.losses.objective import LabelBatch

Sampled = int | Literal["batch"] | None


class Classification(prototypes.PrototypeObjective):
    r"""Plain classification, whose prototypes :math:`w_c` take the place of the keys of a batch.

    .. math:: E\left[-\log \frac{e^{\langle w_c, f(x) \rangle + b_c}}
              {\sum_k e^{\langle w_k, f(x) \rangle + b_k}}\right]

    By Theorem 1 of Reizinger et al. (2024), with classes as instances, :math:`f` recovers latents
    that lie around one vector for each class. The space of the encoder and ``unit_prototypes``
    choose the case: on a sphere, whose learnt radius is the inverse temperature, C1 (unit
    prototypes) or C2; in :math:`R^d`, C3 (unit prototypes) or C4. With ``quadratic`` logits,
    products :math:`f_i f_j` are features, too, and classes may be normal with a covariance each.

    Parameters
    ----------
    classes, dim : int
        Number of prototypes, which should exceed ``dim``, and of latents.
    unit_prototypes : bool
        Keep the prototypes on the unit sphere.
    quadratic : bool
        Give each prototype ``dim (dim + 1) / 2`` more numbers, for squares and products.
    bias : bool
        Learn :math:`b_c`; it absorbs the frequencies of unbalanced classes.
    noise : float
        Known share of labels that were replaced by one drawn uniformly from all; the loss then
        compares labels with :math:`(1 - e) p + e / N` (forward correction).
    sampled : int or "batch", optional
        Estimate the sum over all prototypes from so many, drawn anew at every call: without bias,
        while the loss is too low by ``O(1 / sampled)``. ``"batch"`` takes those of the batch's own
        labels, if labels are equally frequent; gradients are less noisy then. By default, all.

    Attributes
    ----------
    weight : Parameter (classes, dim), or more if quadratic
        The prototypes, before they are brought to unit length; on several ranks, this one's part.

    Examples
    --------
    >>> import torch
    >>> from demix import Classification
    >>> Classification(10, 5, bias=True).bias.shape
    torch.Size([10])
    >>> features, labels = torch.zeros(3, 5), torch.tensor([0, 1, 99_999])
    >>> Classification(100_000, 5, sampled=512).loss(features, labels).exp()
    tensor(100000., grad_fn=<ExpBackward0>)
    """

    draws: torch.Generator
    sharding: Sharding

    def __init__(
        self,
        classes: int,
        dim: int,
        *,
        unit_prototypes: bool = False,
        quadratic: bool = False,
        bias: bool = False,
        noise: float = 0.0,
        sampled: Sampled = None,
    ) -> None:
        if quadratic:
            self.theorem, self.latents = "The theorem on quadratic logits", "functions of latents"
        terms = dim * (dim + 3) // 2 if quadratic else dim
        super().__init__(classes, terms, unit_prototypes=unit_prototypes, bias=bias)
        check_share(noise, "noise")
        if quadratic and unit_prototypes:
            raise DemixError("Quadratic logits have no length to keep; leave unit_prototypes out.")
        self.dim, self.quadratic = dim, quadratic
        few = isinstance(sampled, int) and 2 <= sampled <= classes
        if sampled not in (None, "batch") and not few:
            raise DemixError(
                f'sampled must be between 2 and the number of prototypes, {classes}, "batch" for '
                f"those of the batch, or None for all of them, but got {sampled!r}."
            )
        self.sharding = Sharding((classes,))
        self.noise, self.sampled = noise, sampled
        self.draws = torch.Generator()
        self.initialise()

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Divide the prototypes over the ranks of a group, in place; None gathers them again."""
        if self.sharding.group is not None:
            self._hold([self.sharding.gathered(p.detach()) for p in self.parameters()], None)
        super().across(group)
        if self.group is not None:
            part = even_sharding(self.classes, self.group).own
            self._hold([p.detach()[part].clone() for p in self.parameters()], self.group)
        return self

    @contextmanager
    def whole_on_first(self) -> Iterator[None]:
        """Give all prototypes to rank 0 for a while; every rank has to take part."""
        if self.sharding.group is None:
            yield
            return
        group, parts = self.group, [p.detach() for p in self.parameters()]
        whole = [self.sharding.collected(part) for part in parts]
        if self.sharding.rank == 0:
            self._hold(whole, None)
        try:
            yield
        finally:
            if self.group is None:
                self._hold(parts, group)

    def _hold(self, weights: list[Tensor], group: dist.ProcessGroup | None) -> None:
        for parameter, part in zip(self.parameters(), weights, strict=True):
            parameter.data, parameter.grad = part, None
        self.group, self.sharding = group, even_sharding(self.classes, group)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)``."""
        prototypes.check_features(features, self.dim, self.group)
        labels = prototypes.check_labels(labels, len(features), self.classes)
        if self.sampled is None:
            return self.exact_loss(features, labels)
        (split,) = shardings(self.group, features)
        likelihood = self._estimated(split.gathered(full(features)), split.gathered(labels))
        return -split.mean(self._mixed(likelihood[split.own]))

    def prototypes(self) -> Tensor:
        """Return the prototypes as the loss sees them, ``(classes, dim)``."""
        self._check_whole()
        return super().prototypes()

    def logits(self, features: Tensor) -> Tensor:
        """Return the logits ``(N, classes)`` of features ``(N, dim)``, bias included."""
        self._check_whole()
        return self._queries(full(features)) @ self._keys().T

    def log_probabilities(self, encoder: Encoder, batch: LabelBatch) -> Tensor:
        """Return the log-probability ``(N, classes)`` of each label for each sample."""
        features = full(encoder(batch.x))
        prototypes.check_features(features, self.dim)
        return self._mixed(self.logits(features).log_softmax(dim=1))

    def exact_loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` summed over all prototypes, whether or not training draws some."""
        (split,) = shardings(self.group, features)
        queries, labels = self._queries(split.gathered(full(features))), split.gathered(labels)
        keys, here = self._keys(), prototypes.labels_here(labels, self.sharding)
        own = keys[labels[here] - self.sharding.own.start]
        sums = prototypes.log_sums(queries, keys, self.sharding)
        likelihood = prototypes.own_similarities(queries, own, here, self.sharding) - sums
        return -split.mean(self._mixed(likelihood[split.own]))

    def _check_whole(self) -> None:
        if self.sharding.group is not None:
            raise DemixError(
                f"All {self.classes} prototypes are needed at once, but rank {self.sharding.rank} "
                f"holds {len(self.weight)} of them; gather them with across(None) on every rank."
            )

    def _mixed(self, likelihood: Tensor) -> Tensor:
        """Return the log-likelihoods of labels of which the share ``noise`` was replaced."""
        if not self.noise:
            return likelihood
        spread = torch.full_like(likelihood, math.log(self.noise / self.classes))
        return torch.logaddexp(likelihood + math.log1p(-self.noise), spread)

    def _estimated(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the log-likelihoods ``(B,)``, estimated from a few prototypes."""
        queries, drawn = self._queries(features), self._drawn(labels)
        first, here = self.sharding.own.start, prototypes.labels_here(labels, self.sharding)
        drawn_here = drawn[prototypes.labels_here(drawn, self.sharding)]
        both = self._keys(torch.cat([drawn_here, labels[here]]) - first)
        keys, own = both.split([len(drawn_here), len(here)])
        skip = prototypes.places(drawn_here, labels)
        return prototypes.sampled_log_likelihood(
            prototypes.own_similarities(queries, own, here, self.sharding),
            prototypes.log_sums(queries, keys, self.sharding, skip=skip),
            len(drawn) - (prototypes.places(drawn, labels) >= 0).long(),
            self.classes,
        )

    def _drawn(self, labels: Tensor) -> Tensor:
        """Return the labels, in order, of the prototypes that stand for all."""
        if isinstance(self.sampled, int):
            some = prototypes.draw_distinct(self.sampled, self.classes, self.draws)
            return some.to(labels.device)
        drawn: Tensor = labels.unique()  # any set of others is equally probable
        if len(drawn) < 2:
            raise DemixError(
                "Prototypes of the batch can stand for all if it has at least 2 labels, but all of "
                f"its {len(labels)} samples have label {int(drawn)}; take larger batches."
            )
        return drawn

    def _queries(self, features: Tensor) -> Tensor:
        """Return features with their products, if quadratic, and a one, if there is a bias."""
        if self.quadratic:
            first, second = torch.triu_indices(self.dim, self.dim, device=features.device)
            features = torch.cat([features, features[:, first] * features[:, second]], dim=1)
        if self.bias is None:
            return features
        return torch.cat([features, features.new_ones(len(features), 1)], dim=1)

    def _keys(self, which: Tensor | None = None) -> Tensor:
        """Return the prototypes held, or those at ``which``; the last coordinate is the bias."""
        weight = self.weight if which is None else functional.embedding(which, self.weight)
        keys = self._sized(weight)
        if self.bias is not None:
            bias = self.bias if which is None else self.bias.gather(0, which)
            keys = torch.cat([keys, bias[:, None]], dim=1)
        return shared_gradient(keys, self.sharding.group)


class InstanceDiscrimination(Classification):
    r"""DIET: every sample is a class of its own (Eq. 3 of Reizinger et al. 2024).

    :class:`Classification` with instances as classes, and with its parameters; prototypes of
    instances of one class coincide at the optimum.

    References
    ----------
    Balestriero (2023), Unsupervised Learning on a DIET.

    Examples
    --------
    >>> from demix import InstanceDiscrimination
    >>> InstanceDiscrimination(1000, 5).weight.shape
    torch.Size([1000, 5])
    """
