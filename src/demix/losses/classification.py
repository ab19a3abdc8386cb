"""Cross-entropy over prototypes: one per class, or one per instance (DIET)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Self

import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from demix._support.errors import DemixError
from demix._support.process_group.sharding import (
    Sharding,
    even_sharding,
    shardings,
    shared_gradient,
    summed,
)
from demix._support.validation import check_share
from demix.encoders.encoder import Encoder
from demix.losses.contrast import full
from demix.losses.objective import LabelBatch
from demix.losses.prototypes import (
    PrototypeObjective,
    check_features,
    check_labels,
    draw_distinct,
    labels_here,
    log_sums,
    own_similarities,
    places,
    sampled_log_likelihood,
)

# Numbers of the matrix that are held at once where it cannot be streamed.
_BLOCK = 2**22
Sampled = int | Literal["batch"] | None


class Classification(PrototypeObjective):
    r"""Plain classification, whose prototypes :math:`w_c` take the place of the keys of a batch.

    .. math:: E\left[-\log \frac{e^{\langle w_c, f(x) \rangle + b_c}}
              {\sum_k e^{\langle w_k, f(x) \rangle + b_k}}\right]

    By Theorem 1 of Reizinger et al. (2024), with classes as instances, :math:`f` recovers the
    latents of a :class:`demix.ClusterProcess`. The space of the encoder and ``unit_prototypes``
    choose the case: on a sphere, whose learnt radius is the inverse temperature, C1 (unit
    prototypes) or C2; in :math:`R^d`, C3 (unit prototypes) or C4.

    Parameters
    ----------
    classes, dim : int
        Number of prototypes and of latents. A :class:`DemixWarning` says if fewer than ``dim + 1``
        prototypes identify only a part of the latents.
    unit_prototypes : bool
        Keep the prototypes on the unit sphere.
    bias : bool
        Learn :math:`b_c`; it absorbs the frequencies of unbalanced classes.
    prior : Tensor (classes,), optional
        Known frequencies of the classes: their logarithms are added to the logits, so that the
        features need not bend to explain them.
    noise : float
        Known share of labels that were replaced by one drawn uniformly from all. The loss compares
        labels with :math:`(1 - e) p + e / N` (forward correction), whose optimum is the clean one.
    smoothing : float
        Share of every target that is spread over all classes. It bends the features as noise does;
        with ``noise`` of the same share the optimum is the clean one again, at the cost of a second
        pass over all prototypes.
    sampled : int or "batch", optional
        For very many prototypes: draw this many of them anew at every call, uniformly, and estimate
        the sum over all from them. The estimate of the sum is unbiased, that of the loss too low by
        ``O(1 / sampled)``; with ``sampled=classes`` it is exact. By default all are summed.
        ``"batch"`` takes the prototypes of the batch's own labels, for equally frequent labels,
        as instances are; gradients are less noisy then.

    Attributes
    ----------
    weight : Parameter (classes, dim)
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
    log_prior: Tensor | None

    def __init__(
        self,
        classes: int,
        dim: int,
        *,
        unit_prototypes: bool = False,
        bias: bool = False,
        prior: Tensor | None = None,
        noise: float = 0.0,
        smoothing: float = 0.0,
        sampled: Sampled = None,
    ) -> None:
        super().__init__(classes, dim, unit_prototypes=unit_prototypes, bias=bias)
        for name, share in (("noise", noise), ("smoothing", smoothing)):
            check_share(share, name)
        if sampled not in (None, "batch") and not (
            isinstance(sampled, int) and 2 <= sampled <= classes
        ):
            raise DemixError(
                f'sampled must be between 2 and the number of prototypes, {classes}, "batch" for '
                f"those of the batch, or None for all of them, but got {sampled!r}."
            )
        if sampled is not None and smoothing:
            raise DemixError("smoothing needs the mean of all prototypes; choose it or sampled.")
        self.sharding = Sharding((classes,))
        self.noise, self.smoothing = noise, smoothing
        self.sampled, self.sparse_gradient = sampled, False
        self.draws = torch.Generator()
        self.register_buffer("log_prior", _log_prior(prior, classes))
        self.initialise()

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Divide the prototypes over the ranks of a group, in place; None gathers them again.

        The part on a rank receives the whole gradient of the mean loss: there is nothing to average
        over ranks.
        """
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

    def optimizers(self, rate: float, *, lazy: bool = False) -> list[torch.optim.Optimizer]:
        """Return Adam, in its sparse form if it is to be lazy."""
        self.sparse_gradient = lazy and self.sampled is not None
        if self.sparse_gradient:
            return [torch.optim.SparseAdam(self.parameters(), lr=rate)]
        return super().optimizers(rate, lazy=lazy)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)``."""
        check_features(features, self.weight.shape[1], self.group)
        labels = check_labels(labels, len(features), self.classes)
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
        """Return the logits ``(N, classes)`` of features ``(N, dim)``, offsets included."""
        self._check_whole()
        return self._queries(full(features)) @ self._keys().T

    def log_probabilities(self, encoder: Encoder, batch: LabelBatch) -> Tensor:
        """Return the log-probability ``(N, classes)`` of each label for each sample."""
        features = full(encoder(batch.x))
        check_features(features, self.weight.shape[1])
        return self._mixed(self.logits(features).log_softmax(dim=1))

    def exact_loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` summed over all prototypes, whether or not training draws some."""
        (split,) = shardings(self.group, features)
        queries, labels = self._queries(split.gathered(full(features))), split.gathered(labels)
        keys, here = self._keys(), labels_here(labels, self.sharding)
        own = keys[labels[here] - self.sharding.own.start]
        sums = log_sums(queries, keys, self.sharding)
        likelihood = own_similarities(queries, own, here, self.sharding) - sums
        loss = -(1 - self.smoothing) * split.mean(self._mixed(likelihood[split.own]))
        if self.smoothing:
            of_all = self._mean_of_all(queries, keys, sums)
            loss = loss - self.smoothing * split.mean(of_all[split.own])
        return loss

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

    def _mean_of_all(self, queries: Tensor, keys: Tensor, log_sum: Tensor) -> Tensor:
        """Return the log-likelihood of each sample ``(B,)``, averaged over all labels."""
        group = self.sharding.group
        if not self.noise:
            # The mean logit needs the mean prototype only.
            return queries @ summed(keys.sum(dim=0), group) / self.classes - log_sum

        def block(q: Tensor, log_sum: Tensor) -> Tensor:
            return self._mixed(q @ keys.T - log_sum[:, None]).sum(dim=1)

        # Logarithms of sums do not sum up: make the matrix block by block, backward again.
        size = max(1, _BLOCK // max(1, len(keys)))
        parts = zip(queries.split(size), log_sum.split(size), strict=True)
        sums = torch.cat([checkpoint(block, q, part, use_reentrant=False) for q, part in parts])
        return summed(sums, group) / self.classes

    def _estimated(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the log-likelihoods ``(B,)``, estimated from a few prototypes."""
        queries, drawn = self._queries(features), self._drawn(labels)
        first, here = self.sharding.own.start, labels_here(labels, self.sharding)
        drawn_here = drawn[labels_here(drawn, self.sharding)]
        both = self._keys(torch.cat([drawn_here, labels[here]]) - first)
        keys, own = both.split([len(drawn_here), len(here)])
        return sampled_log_likelihood(
            own_similarities(queries, own, here, self.sharding),
            log_sums(queries, keys, self.sharding, skip=places(drawn_here, labels)),
            len(drawn) - (places(drawn, labels) >= 0).long(),
            self.classes,
        )

    def _drawn(self, labels: Tensor) -> Tensor:
        """Return the labels, in order, of the prototypes that stand for all."""
        if isinstance(self.sampled, int):
            return draw_distinct(self.sampled, self.classes, self.draws).to(labels.device)
        # Any set of other labels is equally probable in a sample's batch.
        drawn: Tensor = labels.unique()
        if len(drawn) < 2:
            raise DemixError(
                "Prototypes of the batch can stand for all if it has at least 2 labels, but all of "
                f"its {len(labels)} samples have label {int(drawn)}; take larger batches."
            )
        return drawn

    def _queries(self, features: Tensor) -> Tensor:
        """Return features with one more coordinate that is one, if there are offsets."""
        if self.bias is None and self.log_prior is None:
            return features
        return torch.cat([features, features.new_ones(len(features), 1)], dim=1)

    def _keys(self, which: Tensor | None = None) -> Tensor:
        """Return the prototypes held, or those at ``which``; the last coordinate is the offset."""
        keys: Tensor = self.weight
        prior = None if self.log_prior is None else self.log_prior[self.sharding.own]
        offsets: list[Tensor] = [x for x in (self.bias, prior) if x is not None]
        if which is not None:
            sparse = self.sparse_gradient
            keys = functional.embedding(which, keys, sparse=sparse)
            offsets = [torch.gather(x, 0, which, sparse_grad=sparse) for x in offsets]
        keys = self._sized(keys)
        if offsets:
            keys = torch.cat([keys, torch.stack(offsets).sum(dim=0)[:, None].to(keys)], dim=1)
        return shared_gradient(keys, self.sharding.group)


class InstanceDiscrimination(Classification):
    r"""DIET: every sample is a class of its own (Eq. 3 of Reizinger et al. 2024).

    The plain classification loss over instance labels, without bias; prototypes of instances of
    one class coincide at the optimum. Parameters are those of :class:`Classification`, with
    ``instances`` in place of classes.

    References
    ----------
    Balestriero (2023), Unsupervised Learning on a DIET.

    Examples
    --------
    >>> from demix import InstanceDiscrimination
    >>> InstanceDiscrimination(1000, 5).weight.shape
    torch.Size([1000, 5])
    """

    def __init__(
        self,
        instances: int,
        dim: int,
        *,
        unit_prototypes: bool = False,
        smoothing: float = 0.0,
        sampled: Sampled = None,
    ) -> None:
        super().__init__(
            instances, dim, unit_prototypes=unit_prototypes, smoothing=smoothing, sampled=sampled
        )


def _log_prior(prior: Tensor | None, classes: int) -> Tensor | None:
    if prior is None:
        return None
    if not torch.is_tensor(prior):
        raise DemixError(
            f"prior must be a tensor of {classes} frequencies, but got {type(prior).__name__}; "
            "convert it with torch.as_tensor."
        )
    if prior.shape != (classes,) or not bool(((prior > 0) & prior.isfinite()).all()):
        raise DemixError(
            f"prior must be {classes} positive frequencies, one per class, but got shape "
            f"{tuple(prior.shape)} from {prior.min().item():g} to {prior.max().item():g}."
        )
    return (prior / prior.sum()).log()
