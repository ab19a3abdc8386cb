"""InfoNCE with anchors as negatives, and its limit for many: alignment and uniformity."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.process_group.sharding import shardings
from demix.encoders.encoder import Encoder
from demix.losses.contrast import check_rows, full, with_potential
from demix.losses.objective import PairBatch
from demix.losses.pairs import PairObjective, PotentialInfoNCE, both_sides
from demix.losses.similarities import SimilarityName, similarity_named
from demix.losses.streaming import pairwise_logsumexp, sharded_logsumexp


@dataclass(frozen=True)
class AnchorInfoNCE(PairObjective[PairBatch]):
    r"""InfoNCE of Eqs. 1 and 6, whose negatives are the other anchors, drawn from :math:`p(x)`.

    :class:`demix.InfoNCE` takes other positives, at no cost of their own, which have another law
    where a box has walls. The paper's scripts count the anchor ``itself`` as a negative, too.

    Parameters
    ----------
    similarity, group
        As in :func:`demix.contrast`.
    itself : bool
        Count the anchor itself, as the paper's scripts do.

    Examples
    --------
    >>> from demix.papers import AnchorInfoNCE
    >>> AnchorInfoNCE(similarity=1).itself
    False
    """

    similarity: SimilarityName = "dot"
    itself: bool = False

    def __call__(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Encode both sides in one pass; tell the positive of an anchor from other anchors."""
        anchors, positives = both_sides(encoder, pairs)
        check_rows(anchors, positives, self.group)
        kind, (own,) = similarity_named(self.similarity), shardings(self.group, anchors)
        near = kind.paired(anchors, positives)
        place = own.own.start + torch.arange(len(anchors), device=anchors.device)
        skip = None if self.itself else place
        far, _ = pairwise_logsumexp(anchors, own.gathered(anchors), kind, skip=skip)
        return own.mean(torch.logaddexp(near, far) - near)


@dataclass(frozen=True)
class AlignmentUniformity(PairObjective[PairBatch]):
    r"""The limit of InfoNCE for many negatives: alignment plus uniformity (Prop. A, Prop. 3).

    The inner expectation of the uniformity is taken over the batch, the sample itself included
    (the plug-in estimate of Wang and Isola). That keeps a pull between positives where InfoNCE
    has none left: when a pair carries more nats than the log of the number of negatives, InfoNCE
    is almost zero for any encoder that tells the batch apart, and this is the loss to use.

    Parameters
    ----------
    similarity, group
        As in :func:`demix.contrast`.

    References
    ----------
    Wang and Isola (2020), Understanding Contrastive Representation Learning through Alignment and
    Uniformity on the Hypersphere; Zimmermann et al. (2021), Eqs. 12, 13, 56, 57.

    Examples
    --------
    >>> from demix.papers import AlignmentUniformity
    >>> AlignmentUniformity(similarity=3).similarity
    3
    """

    similarity: SimilarityName = "dot"

    def __call__(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Encode both sides in one pass; pull pairs together, push the anchors apart."""
        anchors, positives = both_sides(encoder, pairs)
        pull = alignment(anchors, positives, self.similarity, self.group)
        return pull + uniformity(anchors, anchors, self.similarity, self.group)


class PotentialLimit(PotentialInfoNCE):
    r"""The limit of InfoNCE for latents of any marginal: a learnt potential is added to keys.

    .. math:: E\, [\delta(f(x), f(\tilde x)) - a(\tilde x)]
              + E_x \log E_{x'} e^{-\delta(f(x), f(x')) + a(x')}

    As :class:`AlignmentUniformity` it does not saturate, and as
    :class:`~demix.losses.pairs.PotentialInfoNCE` it assumes nothing of the marginal.
    """

    def forward(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the loss ``()``: pull pairs together, push anchors apart."""
        anchors, positives = both_sides(encoder, pairs)
        keys = torch.cat([anchors, positives])
        potential = anchors.new_zeros(len(anchors)), self._of(encoder, keys)[:, 0]
        ranks = shardings(self.group, anchors, keys)
        # In one call, so that what distances leave out of all potentials cancels.
        kind = similarity_named(self.similarity)
        queries, keys = with_potential(anchors, keys, kind, potential, *ranks)
        far, near = keys.chunk(2)
        pull = alignment(queries, near, self.similarity, self.group)
        return pull + uniformity(queries, far, self.similarity, self.group)


def alignment(
    queries: Tensor,
    keys: Tensor,
    similarity: SimilarityName = "dot",
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    """Return :math:`-E[s(h(z~), h(z))]` over positive pairs ``(B, d)`` (Prop. A, Prop. 3)."""
    check_rows(queries, keys, group)
    (own,) = shardings(group, queries)
    return -own.mean(similarity_named(similarity).paired(full(queries), full(keys)))


def uniformity(
    queries: Tensor,
    keys: Tensor,
    similarity: SimilarityName = "dot",
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    r"""Return :math:`E_z \log E_{z~} e^{s(h(z~), h(z))}`, ``z~`` independent of ``z``.

    The sum of :func:`alignment` and this is the limit of ``contrast - log M`` (Eqs. 12, 56).
    Queries ``(B, d)`` and keys ``(K, d)`` are independent.
    """
    check_rows(queries, keys, group)
    own, every = shardings(group, queries, keys)
    rows, _ = sharded_logsumexp(full(queries), full(keys), similarity_named(similarity), every)
    return own.mean(rows) - math.log(every.total)
