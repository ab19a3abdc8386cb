"""The limit of InfoNCE for narrow noise, which needs no negatives."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.process_group.sharding import shardings
from demix.encoders.encoder import Encoder
from demix.losses.objective import PairBatch
from demix.losses.pairs import PairObjective, both_sides
from demix.losses.similarities import SimilarityName, similarity_named


@dataclass(frozen=True)
class LogDet(PairObjective[PairBatch]):
    r"""Alignment of pairs, less the volume that the encoder gives to the data.

    .. math:: E\, \delta(f(x), f(\tilde x)) - E \log |\det J_f(x)|

    If positives are much closer than anything else in the data, the uniformity
    :math:`E \log E e^{-\delta(f(x), f(x'))}` of Theorem 3 is the log-density of the latents, up to
    a constant, and that is :math:`-E \log |\det J_f|`, up to another one. So nothing saturates,
    however much a pair says. It takes as many whitened inputs as latents: with more, directions
    that data do not have would count, too.

    Parameters
    ----------
    similarity : float
        The exponent ``p`` of the distance :math:`\delta`.
    jacobians : int
        Of how many samples of a batch the volume is estimated from.

    References
    ----------
    Zimmermann et al. (2021), Theorem 3 and Eqs. 56, 57.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, Pairs, Real
    >>> from demix.papers import LogDet
    >>> x = torch.randn(16, 3)
    >>> LogDet(2)(Encoder(3, Real(3)), Pairs(x, x, x, x + 0.1)).shape
    torch.Size([])
    """

    similarity: SimilarityName = 2.0
    jacobians: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.similarity == "dot" or self.jacobians < 1:
            raise DemixError(
                "LogDet takes a distance, a number p, and at least 1 Jacobian, but got "
                f"{self.similarity!r} and {self.jacobians!r}."
            )

    def __call__(self, encoder: Encoder, pairs: PairBatch) -> Tensor:
        """Return the loss ``()``."""
        anchors, positives = both_sides(encoder, pairs)
        (own,) = shardings(self.group, anchors)
        near = own.mean(similarity_named(self.similarity).paired(anchors, positives))
        some = pairs.x[: self.jacobians]
        (few,) = shardings(self.group, some)
        return -near - few.mean(log_volume(encoder, some))


def log_volume(encoder: Encoder, x: Tensor) -> Tensor:
    """Return ``log |det J|`` ``(N,)`` of the map from whitened inputs ``x`` to latents."""
    white = encoder.whitening(x.flatten(1))
    if white.shape[1] != encoder.space.dim or encoder.space.spherical:
        raise DemixError(
            f"A volume takes as many inputs as latents, and no sphere, but got {white.shape[1]} "
            f"inputs and {encoder.space}; give components={encoder.space.dim}."
        )
    jacobian = torch.func.jacrev(lambda row: encoder.latents(row[None])[0])
    volume: Tensor = torch.linalg.slogdet(torch.func.vmap(jacobian)(white)).logabsdet
    return volume
