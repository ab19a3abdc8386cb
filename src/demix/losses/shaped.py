"""InfoNCE whose conditional is learnt with the encoder: a scale per dimension, and its shape."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder
from demix.losses.contrast import contrast, log_probabilities
from demix.losses.objective import Objective, PairBatch
from demix.losses.pairs import both_sides, mean_within

# A shape that is learnt needs the matrix of a group in memory, once per dimension.
_GROUP = 256
# Below this a gap has no logarithm worth following.
_LEAST = 1e-6


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
        self.fixed = None if learn_shape else float(shape)
        self.log_scales = nn.Parameter(torch.zeros(dim))
        # p = 1 + softplus(raw)
        raw = torch.tensor(math.log(math.expm1(shape - 1)) if learn_shape else 0.0)
        self.raw_shape = nn.Parameter(raw) if learn_shape else None

    @property
    def scales(self) -> Tensor:
        """The scales ``(dim,)``, in units of the latents."""
        return self.log_scales.exp()

    @property
    def shape(self) -> float:
        """The shape ``p``."""
        return self.fixed if self.fixed is not None else float(self._shape().detach())

    def _shape(self) -> Tensor:
        assert self.raw_shape is not None
        return 1 + functional.softplus(self.raw_shape)

    def forward(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the loss ``()`` of telling positives from the rest, from either side."""
        queries, keys = (side / self.scales for side in both_sides(encoder, pairs))
        if self.fixed is not None:
            return contrast(queries, keys, similarity=self.fixed, two_sided=True, group=self.group)
        return mean_within(self._dense, queries, keys, _GROUP, self.group)

    def log_probabilities(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the log-probability ``(N, N)`` of each positive for each anchor."""
        queries, keys = (side / self.scales for side in both_sides(encoder, pairs))
        return log_probabilities(queries, keys, self.shape)

    def _dense(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the two-sided loss of one group, with a gradient to the shape."""
        shape = self._shape()
        logits = queries.new_zeros(len(queries), len(keys))
        for q, k in zip(queries.T, keys.T, strict=True):
            logits = logits - (q[:, None] - k).abs().clamp_min(_LEAST).pow(shape)
        own = torch.arange(len(queries), device=queries.device)
        sides = functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)
        return sides / 2
