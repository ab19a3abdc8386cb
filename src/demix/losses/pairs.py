"""Losses over positive pairs: InfoNCE, with a learnt potential or a learnt conditional."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.group import checked_group
from demix._support.process_group.sharding import even_sharding, shardings
from demix.encoders.bodies import mlp
from demix.encoders.encoder import Encoder
from demix.losses.contrast import contrast, log_probabilities
from demix.losses.objective import Batch, Objective, PairBatch
from demix.losses.similarities import SimilarityName, similarity_named

_GROUP = 256  # a shape that is learnt needs the matrix of a group in memory, once per dimension
_LEAST = 1e-6  # below this a gap has no logarithm worth following


@dataclass(frozen=True)
class PairObjective(Objective[Batch]):
    """A loss without parameters, given by its settings and the group its batches lie on."""

    group: dist.ProcessGroup | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        checked_group(self.group)

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Return the same loss for batches that lie on the ranks of a group."""
        return replace(self, group=group)


@dataclass(frozen=True)
class InfoNCE(PairObjective[PairBatch]):
    r"""The contrastive loss of Eq. 1 (dot product) or Eq. 6 (a distance) over a batch of pairs.

    The negatives of a pair are the other pairs; a sample is never its own negative.

    Parameters
    ----------
    similarity, temperature, two_sided, group
        As in :func:`demix.contrast`. The encoder's learnable scale makes a temperature redundant.
    within : int, optional
        Contrast within groups of this many pairs, at a fraction of the cost of one large group. The
        optimal critic does not depend on the number of negatives.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, InfoNCE, Pairs, Sphere
    >>> x = torch.randn(16, 3)
    >>> InfoNCE()(Encoder(3, Sphere(3)), Pairs(x, x, x, x + 0.1)).shape
    torch.Size([])
    """

    similarity: SimilarityName = "dot"
    temperature: float = 1.0
    two_sided: bool = True
    within: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None and self.within < 2:
            raise DemixError(f"A group needs at least 2 pairs, but got {self.within!r}.")

    def __call__(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Encode both sides in one pass and contrast them."""
        queries, keys = both_sides(encoder, pairs)
        names = ("similarity", "temperature", "two_sided")
        options = {name: getattr(self, name) for name in names}
        loss: Callable[..., Tensor] = partial(contrast, **options)
        if self.within is None:
            return loss(queries, keys, group=self.group)
        return mean_within(loss, queries, keys, self.within, self.group)

    def log_probabilities(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the log-probability ``(N, N)`` of each positive for each anchor."""
        queries, keys = both_sides(encoder, pairs)
        return log_probabilities(queries, keys, self.similarity, self.temperature)


class PotentialInfoNCE(nn.Module, Objective[PairBatch]):
    r"""InfoNCE for latents of any marginal: a learnt potential takes up their density.

    .. math:: s(x, \tilde x) = -\delta(f(x), f(\tilde x)) + a(\tilde x)

    The best critic is :math:`\log p(\tilde z | z) - \log p(\tilde z)` up to a function of
    :math:`z`. A distance alone is that for a uniform marginal only, which Theorems 2, 5 and 6 of
    Zimmermann et al. (2021) therefore assume. With a potential, the mixed second difference
    over two latents leaves :math:`\delta(h(z_1), h(z_2)) = \delta(z_1, z_2)` for every marginal of
    full support. The potential is a small network on the latents, which starts at zero; no gradient
    reaches the encoder through it.

    Parameters
    ----------
    dim : int
        Number of latents.
    similarity : "dot" or float
        As in :func:`demix.contrast`.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, InfoNCE, Pairs, Sphere
    >>> from demix.losses.pairs import PotentialInfoNCE
    >>> x = torch.randn(16, 3)
    >>> pairs, f = Pairs(x, x, x, x + 0.1), Encoder(3, Sphere(3))
    >>> bool(torch.isclose(PotentialInfoNCE(3)(f, pairs), InfoNCE()(f, pairs)))  # at first
    True
    """

    _sides = 1  # anchors and positives share a potential

    def __init__(self, dim: int, *, similarity: SimilarityName = "dot") -> None:
        super().__init__()
        similarity_named(similarity)  # refuses an unknown one
        self.similarity = similarity
        self.network = mlp(dim, (64, 64), self._sides, activation="silu", residual=False)
        self.initialise()

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the hidden layers anew; the last one is zero, and so is the potential."""
        layers = [layer for layer in self.network if isinstance(layer, nn.Linear)]
        for layer in layers:
            layer.weight.normal_(0, 1 / math.sqrt(layer.in_features), generator=generator)
            layer.bias.zero_()
        layers[-1].weight.zero_()

    def forward(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the loss ``()`` of telling positives from the rest, from either side."""
        queries, keys = both_sides(encoder, pairs)
        loss = partial(contrast, similarity=self.similarity, two_sided=True, group=self.group)
        potential = self._of(encoder, queries)[:, 0], self._of(encoder, keys)[:, -1]
        return loss(self.ahead(queries), keys, potential=potential)

    def ahead(self, queries: Tensor) -> Tensor:
        """Return where positives are expected: at their anchors ``(N, n)``."""
        return queries

    def log_probabilities(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the log-probability ``(N, N)`` of each positive for each anchor."""
        queries, keys = both_sides(encoder, pairs)
        potential = self._of(encoder, keys)[:, -1]
        return log_probabilities(self.ahead(queries), keys, self.similarity, potential=potential)

    def _of(self, encoder: Encoder, latents: Tensor) -> Tensor:
        scale = encoder.space.expand_scale(encoder.scale)
        return self.network((latents / scale).detach())


class DynamicsInfoNCE(PotentialInfoNCE):
    r"""InfoNCE for positives that follow from their anchors by a linear map, and normal noise.

    .. math:: s(x, \tilde x) = -|A f(x) - f(\tilde x)|^2 + a(\tilde x) + b(x)

    is, up to the potentials, the log-likelihood of :math:`\tilde z = A z + \epsilon`: series with
    a time constant for each latent (AR(1), Ornstein-Uhlenbeck) and oscillators. The mixed second
    difference over two anchors and two positives is
    :math:`\langle A (h(z_1) - h(z_2)), h(\tilde z_1) - h(\tilde z_2) \rangle`, a bilinear form of
    the differences of latents, so that :math:`h` is affine if :math:`A` is invertible. The loss
    learns no more than this form, as ``matrix``: its size and the covariance of the noise are left
    to the potentials. :meth:`settle` finds ``dynamics``, the map of the latents itself.

    References
    ----------
    González Laiz, Schmidt and Schneider (2024), Self-supervised contrastive learning performs
    non-linear system identification.

    Examples
    --------
    >>> import torch
    >>> from demix.losses.pairs import DynamicsInfoNCE
    >>> objective, z = DynamicsInfoNCE(2), torch.tensor([[0.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
    >>> objective.settle(z, z / 2)
    >>> objective.dynamics.abs().tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    _sides = 2
    dynamics: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__(dim, similarity=2.0)
        self.matrix = nn.Parameter(torch.eye(dim))
        self.register_buffer("dynamics", torch.eye(dim))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the potentials anew; positives are expected at their anchors."""
        super().initialise(generator)
        if hasattr(self, "matrix"):
            self.matrix.copy_(torch.eye(len(self.matrix)))

    def ahead(self, queries: Tensor) -> Tensor:
        """Return what the latents of positives are compared with ``(N, n)``."""
        return queries @ self.matrix.T

    @torch.no_grad()
    def settle(self, z: Tensor, z_tilde: Tensor) -> None:
        """Take as ``dynamics`` the map of least squares from anchors ``(N, n)`` to positives."""
        past, now = (side - side.mean(dim=0) for side in (z.double(), z_tilde.double()))
        self.dynamics.copy_((torch.linalg.pinv(past) @ now).T)


class ShapedInfoNCE(nn.Module, Objective[PairBatch]):
    r"""InfoNCE for positives that differ more in some latents than in others.

    .. math:: s(q, k) = -\sum_i \left(\frac{|q_i - k_i|}{\lambda_i}\right)^p

    is the similarity of independent generalised normal noise with a scale :math:`\lambda_i` for
    each dimension (Eq. 5 of Zimmermann et al. 2021 with a weighted :math:`L^p`). For ``p = 2`` it
    is that of anisotropic noise, as in Rusak et al. (2024).

    Parameters
    ----------
    dim : int
        Number of latents.
    shape : float
        ``p``, or where it starts.
    learn_shape : bool
        Learn ``p >= 1``, too. Pairs are then contrasted in groups of 256, which the optimal
        similarity does not depend on.

    References
    ----------
    Rusak, Reizinger, Juhos et al. (2024), InfoNCE: Identifying the Gap Between Theory and Practice.

    Examples
    --------
    >>> from demix import ShapedInfoNCE
    >>> objective = ShapedInfoNCE(3, shape=2.0, learn_shape=True)
    >>> round(objective.shape, 6), objective.scales.tolist()
    (2.0, [1.0, 1.0, 1.0])
    """

    def __init__(self, dim: int, *, shape: float = 2.0, learn_shape: bool = False) -> None:
        super().__init__()
        if dim < 1 or not 1 <= shape < math.inf or (learn_shape and shape == 1):
            raise DemixError(
                f"A learnt conditional needs at least 1 latent and a shape p >= 1 (above 1 if it "
                f"is learnt), but got {dim} and {shape!r}."
            )
        self.log_scales = nn.Parameter(torch.zeros(dim))
        self.fixed = None if learn_shape else float(shape)
        if learn_shape:  # p = 1 + softplus(raw)
            self.raw_shape = nn.Parameter(torch.tensor(math.log(math.expm1(shape - 1))))

    @property
    def scales(self) -> Tensor:
        """The scales ``(dim,)``, in units of the latents."""
        return self.log_scales.exp()

    @property
    def shape(self) -> float:
        """The shape ``p``."""
        return float(_shape(self.raw_shape).detach()) if self.fixed is None else self.fixed

    def forward(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the loss ``()`` of telling positives from the rest, from either side."""
        queries, keys = (side / self.scales for side in both_sides(encoder, pairs))
        if self.fixed is not None:
            return contrast(queries, keys, similarity=self.fixed, two_sided=True, group=self.group)
        loss = partial(_dense, raw_shape=self.raw_shape)
        return mean_within(loss, queries, keys, _GROUP, self.group)

    def log_probabilities(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the log-probability ``(N, N)`` of each positive for each anchor."""
        queries, keys = (side / self.scales for side in both_sides(encoder, pairs))
        return log_probabilities(queries, keys, self.shape)


def _shape(raw: Tensor) -> Tensor:
    return 1 + functional.softplus(raw)


def _dense(queries: Tensor, keys: Tensor, raw_shape: Tensor) -> Tensor:
    """Return the two-sided loss of one group, with a gradient to the shape."""
    shape, logits = _shape(raw_shape), queries.new_zeros(len(queries), len(keys))
    for q, k in zip(queries.T, keys.T, strict=True):
        logits = logits - (q[:, None] - k).abs().clamp_min(_LEAST).pow(shape)
    own = torch.arange(len(queries), device=queries.device)
    sides = functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)
    return sides / 2


def both_sides(encoder: Encoder, pairs: PairBatch) -> tuple[Tensor, Tensor]:
    """Return the latents of anchors and of positives, ``(N, n)`` each, from one pass."""
    return encoder(torch.cat([pairs.x, pairs.x_tilde])).chunk(2)


def mean_within(
    loss: Callable[[Tensor, Tensor], Tensor],
    queries: Tensor,
    keys: Tensor,
    size: int,
    group: dist.ProcessGroup | None,
) -> Tensor:
    """Return the mean over all pairs ``()`` of a loss that is taken within groups of ``size``."""
    (split,) = shardings(group, queries)
    if split.total == 0:
        raise DemixError("A batch must have at least one pair, but got none.")
    if any(start % size for start in split.starts):  # else each rank has whole groups
        both = split.gathered(torch.cat([queries, keys], dim=1))
        own = even_sharding(math.ceil(split.total / size), split.group).own
        queries, keys = both[size * own.start : size * own.stop].chunk(2, dim=1)
    # A rank without a group still takes part in the backward pass.
    losses = [queries[:0].sum() + keys[:0].sum()] if len(queries) == 0 else []
    parts = zip(queries.split(size), keys.split(size), strict=True)
    losses += [len(q) * loss(q, k) for q, k in parts if len(q)]
    return torch.stack(losses).sum() * len(split.sizes) / split.total
