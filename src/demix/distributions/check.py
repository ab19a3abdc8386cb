"""A public validator for conditionals that users write."""

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Conditional, Similarity


def check_conditional(conditional: Conditional, *, samples: int = 4096, seed: int = 0) -> None:
    """Verify that ``conditional`` keeps the contract of :class:`demix.Conditional`.

    Checked are: that samples lie in the space and follow the generator; that the mode is at the
    anchor; that ``log_prob`` differs from the implied similarity by a constant for each anchor;
    and that the mean of ``-log_prob`` over samples agrees with ``mean_entropy`` (four standard
    errors), which fails unless density and sampler agree and the density is normalised.

    Raises a :class:`demix.DemixError` that names the law that is broken. The space must be bounded.

    Examples
    --------
    >>> from demix import Sphere, VonMisesFisher, check_conditional
    >>> check_conditional(VonMisesFisher(Sphere(4), kappa=5.0))
    """
    space = conditional.space

    def demand(holds: bool, law: str) -> None:
        if not holds:
            raise DemixError(f"{conditional!r} breaks the contract of a conditional: {law}.")

    anchors = space.uniform(samples, generator=torch.Generator().manual_seed(seed)).double()
    anchors = space.project(anchors)
    first, again = (
        conditional.sample(anchors, generator=torch.Generator().manual_seed(seed + 1))
        for _ in range(2)
    )
    demand(first.shape == anchors.shape, "sample must return one positive per anchor")
    demand(bool(space.contains(first).all()), "samples must lie in the space")
    demand(torch.equal(first, again), "sample must be driven by the generator alone")
    log_prob = conditional.log_prob(first, anchors)
    demand(log_prob.shape == (samples,), "log_prob must return one number per row")
    demand(
        bool((conditional.log_prob(anchors, anchors) >= log_prob - 1e-9).all()),
        "the mode must be at the anchor",
    )
    similarity = conditional.similarity
    if similarity.exact:
        other = conditional.sample(anchors, generator=torch.Generator().manual_seed(seed + 2))
        implied = similarity_of(similarity, first, anchors) - similarity_of(
            similarity, other, anchors
        )
        actual = log_prob - conditional.log_prob(other, anchors)
        demand(torch.allclose(implied, actual, atol=1e-6), "similarity must match log_prob")
    error = float(log_prob.std()) / samples**0.5
    demand(
        abs(float(-log_prob.mean()) - conditional.mean_entropy()) <= 4 * error + 1e-6,
        "samples, log_prob and mean_entropy must agree",
    )


def similarity_of(similarity: Similarity, z: Tensor, anchors: Tensor) -> Tensor:
    """Return ``rate * s(z, anchor)`` for each row."""
    if similarity.kind == "dot":
        return similarity.rate * (z * anchors).sum(dim=-1)
    return -similarity.rate * (z - anchors).abs().pow(similarity.kind).sum(dim=-1)
