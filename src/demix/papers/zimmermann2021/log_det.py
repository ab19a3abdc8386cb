"""The limit of InfoNCE for narrow noise, which needs no negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from demix._support.errors import DemixError
from demix._support.process_group.sharding import Sharding, shardings
from demix.distributions.generalized_normal import half_cdf
from demix.encoders.encoder import Encoder
from demix.losses.objective import PairBatch
from demix.losses.pairs import PairObjective, both_sides
from demix.losses.similarities import SimilarityName, similarity_named

_FLAT = 10.0  # a volume that is so many nats smaller than the median one is as good as none
_NEAREST = 1e-4  # distances from a wall at which shapes other than 1 and 2 have a finite slope


@dataclass(frozen=True)
class LogDet(PairObjective[PairBatch]):
    r"""The likelihood of pairs under the assumed process, for an encoder that is invertible.

    .. math:: E\, \delta(f(x), f(\tilde x)) + E \log C(f(x)) - E \log |\det J_f(x)|

    with the normaliser :math:`C(z) = \int e^{-\delta(z, \tilde z)} d\tilde z` of the conditional.
    If positives are much closer than anything else in the data, the uniformity
    :math:`E \log E e^{-\delta(f(x), f(x'))}` of Theorem 3 is the log-density of the latents times
    :math:`C`, up to a constant, and so this is the limit of InfoNCE. Nothing saturates, however
    much a pair says. It takes as many whitened inputs as latents: with more, directions that data
    do not have would count, too.

    Without bounds :math:`C` is a constant. In a box :math:`Z'` the walls cut it off, and the
    theorem's assumption that latents are uniform adds :math:`\log |Z'| - E \log |\det J_f(x)|`, the
    likelihood of the anchors: the box fits the latents closely, and its walls tell the axes.

    An invertible map has one orientation. Where the determinant has another sign than for most of
    the batch, the encoder folds; there the volume is made smaller, until the fold has gone.

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
        loss = -own.mean(similarity_named(self.similarity).paired(anchors, positives))
        some = pairs.x[: self.jacobians]
        (few,) = shardings(self.group, some)
        volume = few.mean(oriented(*log_volume(encoder, some), few))
        if not encoder.space.bounded:
            return loss - volume
        scale = encoder.space.expand_scale(encoder.scale)
        ends = (torch.full_like(scale, end) for end in (-torch.inf, torch.inf))
        low, high = (encoder.space.squash(end) * scale for end in ends)
        rooms = torch.stack([anchors - low, high - anchors]).clamp_min(_NEAREST)
        inside = half_cdf(rooms, float(self.similarity)).sum(dim=0)
        return loss + own.mean(inside.log().sum(dim=1)) + (high - low).log().sum() - 2 * volume


def log_volume(encoder: Encoder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return sign and ``log |det J|`` ``(N,)`` of the map from whitened ``x`` to latents."""
    white, space = encoder.whitening(x.flatten(1)), encoder.space
    fits = len(space.parts) == 1 and (space.separable or not space.bounded)
    if white.shape[1] != space.dim or not fits:
        raise DemixError(
            "A volume takes as many inputs as latents, in a box or without bounds, but got "
            f"{white.shape[1]} inputs and {space}; give components={space.dim}."
        )
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: encoder.body(row[None])[0]))(white)
    sign, volume = torch.linalg.slogdet(jacobian)
    volume = volume + space.expand_scale(encoder.scale).log().sum()
    if space.bounded:  # The slope of the sigmoid itself is rounded to zero near a wall.
        free = encoder.body(white)
        slopes = functional.logsigmoid(free) + functional.logsigmoid(-free)
        volume = volume + slopes.sum(dim=1) + space.log_volume
    return sign, volume


def oriented(sign: Tensor, volume: Tensor, few: Sharding) -> Tensor:
    """Return log-volumes ``(N,)``, negative where a map folds."""
    # Not below a bound: the logarithm would draw all of the gradient to a few samples.
    signs, volumes = few.gathered(torch.stack([sign, volume], dim=1).detach()).T
    volume = torch.maximum(volume, volumes.median() - _FLAT)
    return torch.where(sign * signs.sum() >= 0, volume, -volume)
